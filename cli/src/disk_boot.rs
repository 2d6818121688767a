// SPDX-License-Identifier: MIT OR Apache-2.0
//! The initial RAM disk of a guest that starts from its own disk: the loader, and drivers of disks and file systems.

use std::fs;
use std::io::Cursor;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use cpio::{NewcBuilder, write_cpio};

use crate::config::{Boot, Guest};
use crate::drivers::Drivers;

/// Its name in a bundle.
pub const NAME: &str = "disk-boot.cpio";
/// The word of the command line by which the loader knows its disk (`loader/src/main.rs`).
const SERIAL: &str = "baton.disk=";
/// Modules that the drivers below request by names of algorithms and character sets, not of modules.
const HELPERS: [&str; 6] = ["crc32c_generic", "crc32c_intel", "nls_ascii", "nls_cp437", "nls_iso8859-1", "nls_utf8"];
const DISKS: [&str; 3] = ["virtio_pci", "virtio_blk", "nvme"];
/// The drivers of file systems that the loader mounts.
const FILE_SYSTEMS: [&str; 3] = ["ext4", "xfs", "vfat"];
const PROGRAM: u32 = 0o100_755;

/// Returns the archive with a loader as `/init`, and the drivers that the release in a folder has.
pub fn initrd(loader: &Path, drivers: &Path) -> Result<Vec<u8>> {
    let program = fs::read(loader).with_context(|| format!("the loader {} cannot be read", loader.display()))?;
    let drivers_of = Drivers::of_release(drivers)?;
    for (kind, names) in [("disks", &DISKS[1..]), ("file systems", &FILE_SYSTEMS)] {
        let has_one = names.iter().any(|name| drivers_of.has(name));
        ensure!(has_one, "{} has no driver of {kind}: none of {}", drivers.display(), names.join(", "));
    }
    let names = HELPERS.into_iter().chain(DISKS).chain(FILE_SYSTEMS).filter(|name| drivers_of.has(name));
    let entry = (NewcBuilder::new("init").mode(PROGRAM), Cursor::new(program));
    let mut archive = write_cpio([entry].into_iter(), Vec::new()).context("the loader cannot be packed")?;
    archive.extend(drivers_of.archive(&names.collect::<Vec<_>>())?);
    Ok(archive)
}

/// Returns the command line of a guest's kernel: its own, and the disk that the loader is to start from.
pub fn cmdline(guest: &Guest) -> String {
    match &guest.boot {
        Boot::Disk { serial: Some(serial), .. } => {
            format!("{} {SERIAL}{serial}", guest.cmdline).trim_start().to_owned()
        }
        _ => guest.cmdline.clone(),
    }
}

#[cfg(test)]
#[path = "disk_boot_tests.rs"]
mod tests;
