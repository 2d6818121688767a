// SPDX-License-Identifier: MIT OR Apache-2.0
use std::os::unix::fs::symlink;

use super::*;

/// A folder as the kernel shows it: each disk with its serial number's file and content, and its partitions.
fn class(disks: &[(&str, &str, &str, u32)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let class = folder.path().join("class");
    fs::create_dir(&class).expect("made");
    for (disk, serial_file, serial, partitions) in disks {
        let device = folder.path().join("devices").join(disk);
        add(&class, &device);
        let serial_file = device.join(serial_file);
        fs::create_dir_all(serial_file.parent().expect("in a folder")).expect("made");
        fs::write(serial_file, format!("{serial}\n")).expect("written");
        for number in 1..=*partitions {
            let partition = device.join(format!("{disk}{number}"));
            add(&class, &partition);
            fs::write(partition.join("partition"), format!("{number}\n")).expect("written");
        }
    }
    folder
}

fn add(class: &Path, device: &Path) {
    fs::create_dir_all(device).expect("made");
    fs::write(device.join("size"), "2048\n").expect("written");
    symlink(device, class.join(device.file_name().expect("a name"))).expect("linked");
}

#[test]
fn partitions_stand_for_their_disk_and_a_disk_without_any_for_itself() {
    let folder = class(&[("vdb", "serial", "web", 0), ("vda", "serial", "root", 11), ("loop0", "serial", "", 0)]);
    let found = devices(&folder.path().join("class"), None);
    let expected = ["vda1", "vda2", "vda3", "vda4", "vda5", "vda6", "vda7", "vda8", "vda9", "vda10", "vda11", "vdb"];
    assert_eq!(found, expected);
}

#[test]
fn a_serial_number_chooses_a_disk_of_either_kind() {
    let folder = class(&[("nvme0n1", "device/serial", "S5", 0), ("vda", "serial", "root", 1)]);
    let class = folder.path().join("class");
    assert_eq!(devices(&class, Some("S5")), ["nvme0n1"]);
    assert_eq!(devices(&class, Some("root")), ["vda1"]);
    assert_eq!(devices(&class, Some("none")), <[&str; 0]>::default());
}

#[test]
fn a_disk_whose_size_is_not_known_yet_is_left_out() {
    let folder = class(&[("vda", "serial", "root", 0)]);
    let class = folder.path().join("class");
    fs::write(class.join("vda/size"), "0\n").expect("written");
    assert_eq!(devices(&class, None), <[&str; 0]>::default());
    assert_eq!(devices(&folder.path().join("nowhere"), None), <[&str; 0]>::default());
}
