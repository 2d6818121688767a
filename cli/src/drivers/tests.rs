// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of the archives of drivers.

use std::fs::create_dir_all;

use tempfile::TempDir;

use super::*;

/// A module's file: an ELF header, `.modinfo`, the sections' names, and three section headers.
fn module(depends: &str) -> Vec<u8> {
    const HEADER_BYTES: u64 = 64;
    let info = format!("license=GPL\0depends={depends}\0name=x\0");
    let names = b"\0.modinfo\0.shstrtab\0";
    let names_at = HEADER_BYTES + info.len() as u64;
    let sections_at = names_at + names.len() as u64;
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    for half in [1_u16, 62] {
        file.extend(half.to_le_bytes());
    }
    file.extend(1_u32.to_le_bytes());
    for double in [0, 0, sections_at] {
        file.extend(double.to_le_bytes());
    }
    file.extend(0_u32.to_le_bytes());
    for half in [64_u16, 0, 0, 64, 3, 2] {
        file.extend(half.to_le_bytes());
    }
    file.extend(info.as_bytes());
    file.extend(names);
    file.extend([0; 64]);
    for (name, kind, at, size) in [(1_u32, 1_u32, HEADER_BYTES, info.len()), (10, 3, names_at, names.len())] {
        file.extend(name.to_le_bytes());
        file.extend(kind.to_le_bytes());
        for double in [0, 0, at, size as u64, 0, 1, 0] {
            file.extend(double.to_le_bytes());
        }
    }
    file
}

/// A kernel with modules that depend on these others.
fn kernel(modules: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let tree = folder.path().join("lib/modules/6.1.0-test");
    create_dir_all(tree.join("kernel/drivers")).expect("made");
    for (name, depends) in modules {
        fs::write(tree.join(format!("kernel/drivers/{name}.ko")), module(depends)).expect("written");
    }
    fs::write(tree.join("modules.builtin"), "kernel/drivers/ptp/ptp.ko\n").expect("written");
    folder
}

/// The names of an archive's entries, and its list.
fn entries(archive: &[u8]) -> (Vec<String>, String) {
    let (mut names, mut list) = (Vec::new(), String::new());
    let mut reader = cpio::NewcReader::new(archive).expect("an archive");
    while !reader.entry().is_trailer() {
        names.push(reader.entry().name().to_owned());
        if reader.entry().name().ends_with(LIST) {
            std::io::Read::read_to_string(&mut reader, &mut list).expect("text");
        }
        reader = cpio::NewcReader::new(reader.finish().expect("whole")).expect("another");
    }
    (names, list)
}

#[test]
fn a_module_follows_all_that_it_depends_on() {
    let kernel = kernel(&[("nvme", "nvme-core"), ("nvme-core", "t10_pi,ptp"), ("t10-pi", ""), ("other", "")]);
    let archive = Drivers::of(kernel.path()).expect("modules").archive(&["nvme", "t10-pi", "ptp"]).expect("all there");
    let (names, list) = entries(&archive);
    assert_eq!(list, "t10_pi\nnvme_core\nnvme\n");
    let expected = ["", "/t10_pi.ko", "/nvme_core.ko", "/nvme.ko", "/modules.load"];
    let expected = expected.map(|name| format!("lib/modules/6.1.0-test{name}"));
    assert_eq!(names[2..], expected);
    assert_eq!(names[..2], ["lib", "lib/modules"]);
}

#[test]
fn modules_that_depend_on_each_other_end() {
    let kernel = kernel(&[("a", "b"), ("b", "a")]);
    let archive = Drivers::of(kernel.path()).expect("modules").archive(&["a"]).expect("all there");
    assert_eq!(entries(&archive).1, "b\na\n");
}

#[test]
fn a_driver_that_a_kernel_does_not_have_is_named() {
    let kernel = kernel(&[("nvme", "gone"), ("e1000e", "")]);
    let drivers = Drivers::of(kernel.path()).expect("modules");
    let message = |name| format!("{:#}", drivers.archive(&[name]).expect_err("not there"));
    let missing = "Linux 6.1.0-test has no driver";
    let expected = format!("{missing} \"e1000\", built in or as a module; did you mean \"e1000e\"?");
    assert_eq!(message("e1000"), expected);
    assert!(message("igb").starts_with(&format!("{missing} \"igb\"")), "{}", message("igb"));
    assert!(message("igb").ends_with("; Debian's full kernels have more than its cloud kernels"), "{}", message("igb"));
    assert!(message("nvme").starts_with("the module \"nvme\" depends on another: "), "{}", message("nvme"));
}

#[test]
fn a_file_that_is_no_module_is_named() {
    let kernel = kernel(&[]);
    let file = kernel.path().join("lib/modules/6.1.0-test/kernel/drivers/nvme.ko");
    for content in [&b"not an ELF file"[..], &module("")[..100], &module("")[..64], b""] {
        fs::write(&file, content).expect("written");
        let error = Drivers::of(kernel.path()).expect("modules").archive(&["nvme"]).expect_err("no module");
        assert!(error.to_string().ends_with("nvme.ko is no module"), "{error}");
    }
    assert!(Drivers::of(Path::new("/nowhere")).expect_err("nothing").to_string().contains("/nowhere/lib/modules"));
}

#[test]
fn compressed_modules_are_decompressed() {
    let kernel = kernel(&[("nvme", "")]);
    let file = kernel.path().join("lib/modules/6.1.0-test/kernel/drivers/nvme.ko");
    assert!(Command::new("xz").arg(&file).status().expect("xz is part of set-up").success());
    assert_eq!(read(&file.with_extension("ko.xz")).expect("decompressed"), module(""));
    let (names, _) = entries(&Drivers::of(kernel.path()).expect("modules").archive(&["nvme"]).expect("there"));
    assert!(names.contains(&"lib/modules/6.1.0-test/nvme.ko".to_owned()), "{names:?}");
    fs::write(file.with_extension("ko.xz"), "x").expect("written");
    let error = Drivers::of(kernel.path()).expect("modules").archive(&["nvme"]).expect_err("damaged");
    assert!(format!("{error:#}").contains("cannot be read: xz: "), "{error:#}");
}
