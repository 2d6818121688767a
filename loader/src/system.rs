// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests of process 1 to the kernel: drivers, file systems, and kexec.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use kexec_loader::{KexecRequest, load_and_exec};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::system::{finit_module, uname};

use crate::installed::Installed;

/// The mount point of a disk's file system.
pub const ROOT: &str = "/disk";
/// The file systems of an installed system's root or boot partition, in the order in which they are tried.
const FILE_SYSTEMS: [&str; 3] = ["ext4", "xfs", "vfat"];
/// The names of drivers, in the order in which they are loaded.
const DRIVERS: &str = "modules.load";
/// An initial RAM disk of several parts, joined.
const JOINED: &str = "/initrd";

/// Mounts the kernel's own file systems.
pub fn mount_kernel_file_systems() -> Result<()> {
    for (kind, path) in [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev")] {
        fs::create_dir_all(path).with_context(|| format!("{path} cannot be made"))?;
        mount(kind, path, kind, MountFlags::empty(), None).with_context(|| format!("{kind} cannot be mounted"))?;
    }
    fs::create_dir_all(ROOT).with_context(|| format!("{ROOT} cannot be made"))
}

/// Loads the drivers that are in the initial RAM disk; returns the reasons why some could not be.
pub fn load_drivers() -> Vec<String> {
    let folder = Path::new("/lib/modules").join(uname().release().to_string_lossy().as_ref());
    let list = folder.join(DRIVERS);
    match fs::read_to_string(&list) {
        Ok(names) => names.lines().filter_map(|name| load(&folder.join(format!("{name}.ko"))).err()).collect(),
        Err(error) => vec![format!(
            "{} cannot be read ({error}); kernel and drivers in host.toml have to be of one release",
            list.display()
        )],
    }
}

fn load(path: &Path) -> Result<(), String> {
    let explain = |error: &dyn std::fmt::Display| format!("{} cannot be loaded: {error}", path.display());
    let file = File::open(path).map_err(|error| explain(&error))?;
    match finit_module(&file, c"", 0) {
        Err(error) if error != Errno::EXIST => Err(explain(&error)),
        _ => Ok(()),
    }
}

/// Mounts a device's file system at [`ROOT`], not to be written.
pub fn mount_disk(device: &str) -> Result<()> {
    let path = Path::new("/dev").join(device);
    for kind in FILE_SYSTEMS {
        match mount(&path, ROOT, kind, MountFlags::RDONLY, None) {
            Ok(()) => return Ok(()),
            // The file system is of another kind, or this kind has no driver.
            Err(Errno::INVAL | Errno::NODEV) => {}
            Err(error) => return Err(io::Error::from(error)).with_context(|| format!("its {kind} cannot be mounted")),
        }
    }
    bail!("it has none of the file systems {}", FILE_SYSTEMS.join(", "))
}

/// Leaves the file system that is mounted at [`ROOT`].
pub fn unmount_disk() {
    // A busy one is merely not tried again.
    let _ = unmount(ROOT, UnmountFlags::DETACH);
}

/// Starts a kernel in place of this one; returns only on failure, with the reason.
pub fn start(installed: &Installed) -> anyhow::Error {
    let request = initrd(&installed.initrds).map(|initrd| KexecRequest {
        kernel: installed.kernel.clone(),
        initrd,
        cmdline: installed.cmdline.clone(),
    });
    match request.map(|request| load_and_exec(&request)) {
        Err(error) => error,
        Ok(Err(error)) => {
            anyhow::Error::new(error).context(format!("{} cannot be started", installed.kernel.display()))
        }
        Ok(Ok(never)) => match never {},
    }
}

/// Returns the file with an initial RAM disk. The kernel takes one file, so several are joined, as a boot loader does.
fn initrd(parts: &[PathBuf]) -> Result<Option<PathBuf>> {
    let [_, _, ..] = parts else { return Ok(parts.first().cloned()) };
    let mut joined = File::create(JOINED).with_context(|| format!("{JOINED} cannot be made"))?;
    for part in parts {
        let copied = File::open(part).and_then(|mut part| io::copy(&mut part, &mut joined));
        copied.with_context(|| format!("{} cannot be copied", part.display()))?;
    }
    Ok(Some(JOINED.into()))
}
