// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;

/// A file system with these files.
fn disk(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (path, content) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().expect("in a folder")).expect("made");
        fs::write(path, content).expect("written");
    }
    folder
}

fn refusal(files: &[(&str, &str)]) -> String {
    format!("{:#}", find(disk(files).path()).expect_err("nothing to start"))
}

const GRUB_CFG: &str = "menuentry a {\nlinux /boot/vmlinuz ro\ninitrd /boot/initrd.img\n}\n";

#[test]
fn a_root_with_its_own_boot_folder_is_found() {
    let disk = disk(&[("boot/grub/grub.cfg", GRUB_CFG), ("boot/vmlinuz", "k"), ("boot/initrd.img", "i")]);
    let [kernel, initrd] = ["boot/vmlinuz", "boot/initrd.img"].map(|path| disk.path().join(path));
    let expected = Installed { title: "a".into(), kernel, initrds: vec![initrd], cmdline: "ro".into() };
    assert_eq!(find(disk.path()).expect("found"), expected);
}

#[test]
fn a_boot_partition_of_its_own_is_found() {
    let text = GRUB_CFG.replace("/boot/", "/");
    let disk = disk(&[("grub2/grub.cfg", &text), ("vmlinuz", "k"), ("initrd.img", "i")]);
    assert_eq!(find(disk.path()).expect("found").kernel, disk.path().join("vmlinuz"));
}

#[test]
fn entries_of_their_own_come_before_grubs_menu_and_name_files_beside_them() {
    let disk = disk(&[
        ("boot/grub2/grub.cfg", GRUB_CFG),
        ("boot/grub2/grubenv", "kernelopts=quiet\n"),
        ("boot/loader/entries/b.conf", "linux /vmlinuz-2\noptions $kernelopts\n"),
        ("boot/loader/entries/README", "linux /no"),
        ("boot/vmlinuz-2", "k"),
    ]);
    let found = find(disk.path()).expect("found");
    assert_eq!((found.kernel, found.cmdline.as_str()), (disk.path().join("boot/vmlinuz-2"), "quiet"));
}

#[test]
fn a_disk_without_a_kernel_to_start_is_refused_with_the_reason() {
    assert!(refusal(&[("etc/fstab", "")]).contains("neither grub.cfg nor loader/entries"));
    assert_eq!(refusal(&[("boot/grub/grub.cfg", "set timeout=5")]), "grub.cfg offers no Linux kernel");
    let without_initrd = refusal(&[("boot/grub/grub.cfg", GRUB_CFG), ("boot/vmlinuz", "k")]);
    assert_eq!(without_initrd, "/boot/initrd.img, which its configuration names, is not there");
    let outside = refusal(&[("boot/grub/grub.cfg", "menuentry a {\nlinux ../../../../../../etc/passwd\n}")]);
    assert!(outside.contains("is not there"), "{outside}");
}

#[test]
fn a_configuration_that_is_too_large_is_not_read() {
    let large = " ".repeat(MOST_BYTES as usize + 1);
    assert!(refusal(&[("grub/grub.cfg", &large)]).contains("more than 4194304"));
}
