// SPDX-License-Identifier: MIT OR Apache-2.0
//! `/init` of a guest that starts from its own disk (`boot = "disk"` in host.toml).
//!
//! It loads the drivers beside it, waits until a disk has the configuration of a boot loader, and starts the kernel
//! that this configuration names in its own place, by kexec. So the guest runs the kernel that its own distribution
//! has installed, and a newer one after its next reboot.
//!
//! It runs as process 1: the kernel panics when it ends, so it repeats the search until a kernel has started.

mod disks;
mod entries;
mod entry;
mod grub;
mod installed;
mod system;
mod words;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

/// Prints a line on the console; a console that is gone is no reason for process 1 to end.
macro_rules! report {
    ($($words:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout(), "baton-loader: {}", format_args!($($words)*));
    }};
}

/// The word of the command line that names the disk to start from, by its serial number.
const SERIAL: &str = "baton.disk=";
/// The time between two rounds over the disks.
const PAUSE: Duration = Duration::from_millis(200);
/// The rounds after which a disk that had nothing to start is tried again: ten seconds.
const ROUNDS_UNTIL_AGAIN: u32 = 50;

fn main() -> ! {
    if let Err(error) = system::mount_kernel_file_systems() {
        report!("{error:#}");
    }
    system::load_drivers().iter().for_each(|complaint| report!("{complaint}"));
    let cmdline = fs::read_to_string("/proc/cmdline").unwrap_or_default();
    let serial = cmdline.split_whitespace().find_map(|word| word.strip_prefix(SERIAL));
    let place = serial.map_or("any disk".to_owned(), |serial| format!("the disk {serial}"));
    report!("searching for a kernel on {place}");
    let mut refusals = BTreeMap::new();
    loop {
        for round in 0..ROUNDS_UNTIL_AGAIN {
            search_for_a_kernel(serial, round == 0, &mut refusals);
            sleep(PAUSE);
        }
    }
}

/// Tries the devices that have not been tried yet, or all. `refusals` are the reasons that have been printed.
fn search_for_a_kernel(serial: Option<&str>, all: bool, refusals: &mut BTreeMap<String, String>) {
    for device in disks::devices(Path::new(disks::CLASS), serial) {
        if !all && refusals.contains_key(&device) {
            continue;
        }
        let Err(error) = start_from(&device);
        let reason = format!("{error:#}");
        if refusals.get(&device) != Some(&reason) {
            report!("{device}: {reason}");
        }
        refusals.insert(device, reason);
    }
}

/// Starts the kernel that is installed on a device; returns only on failure, with the reason.
fn start_from(device: &str) -> anyhow::Result<Infallible> {
    system::mount_disk(device)?;
    let started = installed::find(Path::new(system::ROOT)).and_then(|installed| {
        report!("starting {:?} from {device}: {}", installed.title, installed.cmdline);
        Err(system::start(&installed))
    });
    system::unmount_disk();
    started
}
