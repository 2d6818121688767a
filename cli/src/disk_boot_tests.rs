// SPDX-License-Identifier: MIT OR Apache-2.0
use std::io::Read as _;

use super::*;
use crate::config::Guest;
use crate::size::Size;

/// A release with these drivers built in.
fn release(built_in: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("kernel")).expect("made");
    let lines: String = built_in.iter().map(|name| format!("kernel/drivers/{name}.ko\n")).collect();
    fs::write(folder.path().join("modules.builtin"), lines).expect("written");
    fs::write(folder.path().join("loader"), "program").expect("written");
    folder
}

fn made(built_in: &[&str]) -> Result<Vec<u8>> {
    let release = release(built_in);
    initrd(&release.path().join("loader"), release.path())
}

#[test]
fn the_loader_is_the_first_program_and_the_list_of_drivers_is_beside_it() {
    let archive = made(&["virtio_blk", "ext4"]).expect("made");
    let mut reader = cpio::NewcReader::new(&archive[..]).expect("an archive");
    assert_eq!((reader.entry().name(), reader.entry().mode()), ("init", PROGRAM));
    let mut program = String::new();
    reader.read_to_string(&mut program).expect("read");
    assert_eq!(program, "program");
    let text = String::from_utf8_lossy(&archive);
    assert!(text.contains("modules.load"), "{text:?}");
}

#[test]
fn a_release_without_disks_or_file_systems_is_refused() {
    let refusal = |built_in: &[&str]| format!("{:#}", made(built_in).expect_err("useless"));
    assert!(refusal(&["virtio_pci", "ext4"]).ends_with("has no driver of disks: none of virtio_blk, nvme"));
    assert!(refusal(&["nvme"]).ends_with("has no driver of file systems: none of ext4, xfs, vfat"));
}

#[test]
fn the_loader_is_given_the_disk_that_it_starts_from() {
    let mut guest = Guest::new("web", "vmlinuz".into(), Size::mebibytes(64));
    guest.cmdline = "console=ttyS0".to_owned();
    assert_eq!(cmdline(&guest), "console=ttyS0");
    let disk = |serial: Option<&str>| Boot::Disk { drivers: "/lib".into(), serial: serial.map(str::to_owned) };
    guest.boot = disk(None);
    assert_eq!(cmdline(&guest), "console=ttyS0");
    guest.boot = disk(Some("root"));
    assert_eq!(cmdline(&guest), "console=ttyS0 baton.disk=root");
    guest.cmdline.clear();
    assert_eq!(cmdline(&guest), "baton.disk=root");
}
