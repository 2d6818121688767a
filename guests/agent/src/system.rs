// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests of process 1 to the kernel: file systems, and the end.

use crate::log;
use rustix::fs::sync;
use rustix::mount::{MountFlags, mount};
use rustix::system::{RebootCommand, reboot};
use std::fs;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

const FILE_SYSTEMS: [(&str, &str); 3] = [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev")];

/// Mounts what programs expect; what cannot be mounted is reported and done without.
pub fn mount_all() -> Vec<String> {
    let mount_one = |(kind, path): (&str, &str)| -> Option<String> {
        let made = fs::create_dir_all(path).map_err(|error| format!("cannot make {path}: {error}"));
        let mounted = made.and_then(|()| {
            mount(kind, path, kind, MountFlags::empty(), None::<&std::ffi::CStr>)
                .map_err(|error| format!("cannot mount {kind} on {path}: {error}"))
        });
        mounted.err()
    };
    FILE_SYSTEMS.into_iter().filter_map(mount_one).collect()
}

/// Has the kernel print errors and worse on the console, and nothing else; its log has all.
pub fn show_errors_only() {
    const UP_TO_ERRORS: &str = "4";
    if let Err(error) = fs::write("/proc/sys/kernel/printk", UP_TO_ERRORS) {
        log!("baton-agent: the kernel goes on to print everything: {error}");
    }
}

/// Takes every network link down, as a distribution's shutdown does. Linux without its commit 0d0eff39ceb3 can spin for
/// ever where it shuts a virtio-net device down that has frames under way.
fn take_links_down() {
    const IS_UP: u32 = 1;
    for link in fs::read_dir("/sys/class/net").into_iter().flatten().flatten() {
        let path = link.path().join("flags");
        let flags = fs::read_to_string(&path).unwrap_or_default();
        let Ok(flags) = u32::from_str_radix(flags.trim().trim_start_matches("0x"), 16) else { continue };
        if let Err(error) = fs::write(&path, format!("{:#x}", flags & !IS_UP)) {
            log!("baton-agent: {} stays up: {error}", path.display());
        }
    }
}

/// Powers off.
pub fn power_off() -> ! {
    end(RebootCommand::PowerOff, "powering off")
}

/// Reboots.
pub fn restart() -> ! {
    end(RebootCommand::Restart, "rebooting")
}

/// Makes the kernel panic; returns when it would not.
pub fn panic_kernel() {
    log!("baton-agent: panicking, as asked");
    if let Err(error) = fs::write("/proc/sysrq-trigger", "c") {
        log!("baton-agent: the kernel has no sysrq trigger to panic by: {error}");
    }
}

/// Makes the kernel show what every CPU does; those that compute are ordered to by an NMI.
pub fn show_backtraces() {
    if let Err(error) = fs::write("/proc/sysrq-trigger", "l") {
        log!("baton-agent: the kernel has no sysrq trigger to ask for backtraces: {error}");
    }
    log!("baton-agent: backtraces shown");
}

/// A shell on the console, until it ends.
pub fn shell() {
    log!("baton-agent: a shell; 'exit' ends it");
    let ended = Command::new("/bin/busybox").args(["setsid", "cttyhack", "sh"]).env("PATH", "/bin:/sbin").status();
    match ended {
        Ok(status) => log!("baton-agent: the shell ended, {status}"),
        Err(error) => log!("baton-agent: no shell in this initramfs: {error}"),
    }
}

/// Does nothing, for ever.
pub fn wait() -> ! {
    loop {
        sleep(Duration::from_secs(3600));
    }
}

fn end(mode: RebootCommand, doing: &str) -> ! {
    log!("baton-agent: {doing}");
    take_links_down();
    sync();
    if let Err(error) = reboot(mode) {
        log!("baton-agent: the kernel refused: {error}");
    }
    wait()
}
