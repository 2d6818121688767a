// SPDX-License-Identifier: MIT OR Apache-2.0
//! The disks of the machine, and their partitions.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The folder of the kernel's block devices.
pub const CLASS: &str = "/sys/class/block";
/// Starts of the names of devices that no operating system is installed on.
const OTHERS: [&str; 5] = ["ram", "loop", "zram", "sr", "fd"];

/// Returns the names of the devices that can have a file system, sorted: the partitions of each disk, or a disk that
/// has none. With a serial number, those of the disk that has it.
pub fn devices(class: &Path, serial: Option<&str>) -> Vec<String> {
    let names = fs::read_dir(class).into_iter().flatten().flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    let names = names.filter(|name| !OTHERS.iter().any(|other| name.starts_with(other)));
    let mut by_disk: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for name in names.filter(|name| !is_empty(&class.join(name))) {
        match disk_of(class, &name) {
            Some(disk) => by_disk.entry(disk).or_default().push(name),
            None => _ = by_disk.entry(name).or_default(),
        }
    }
    let wanted = by_disk.into_iter().filter(|(disk, _)| serial.is_none_or(|serial| has_serial(class, disk, serial)));
    wanted.flat_map(|(disk, partitions)| if partitions.is_empty() { vec![disk] } else { sorted(partitions) }).collect()
}

/// Returns the disk that a partition is on; `None` for a disk.
fn disk_of(class: &Path, name: &str) -> Option<String> {
    let device = fs::canonicalize(class.join(name)).ok()?;
    let is_partition = device.join("partition").exists();
    is_partition.then(|| Some(device.parent()?.file_name()?.to_str()?.to_owned())).flatten()
}

/// Returns whether a device is a drive without a medium, or a disk of a size that the kernel does not know.
fn is_empty(device: &Path) -> bool {
    fs::read_to_string(device.join("size")).is_ok_and(|size| size.trim() == "0")
}

/// Returns whether a disk has this serial number: virtio shows it with the disk, NVMe with the controller.
fn has_serial(class: &Path, disk: &str, serial: &str) -> bool {
    let files: [PathBuf; 2] = ["serial", "device/serial"].map(|file| class.join(disk).join(file));
    files.iter().any(|file| fs::read_to_string(file).is_ok_and(|found| found.trim() == serial))
}

/// Sorts `vda10` behind `vda2`.
fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort_by(|one, other| (one.len(), one).cmp(&(other.len(), other)));
    names
}

#[cfg(test)]
#[path = "disks_tests.rs"]
mod tests;
