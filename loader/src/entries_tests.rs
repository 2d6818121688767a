// SPDX-License-Identifier: MIT OR Apache-2.0
use proptest::prelude::*;

use super::*;

fn file(name: &str, version: &str) -> EntryFile {
    let text = format!(
        "# made by kernel-install\ntitle Fedora ({version})\nversion {version}\nlinux /vmlinuz-{version}\n\
         initrd /initramfs-{version}.img $tuned_initrd\noptions root=UUID=12 ro $kernelopts $tuned_params\n"
    );
    EntryFile { name: name.into(), text }
}

fn started(files: &[EntryFile], environment: &str) -> Entry {
    default_entry(files, &Environment::parse(environment)).expect("there is an entry")
}

#[test]
fn the_newest_kernel_is_started_with_the_values_of_grubs_variables() {
    let files =
        [file("m-6.9.7", "6.9.7-200.fc40"), file("m-6.10.3", "6.10.3-200.fc40"), file("m-0-rescue", "0-rescue")];
    let expected = Entry {
        title: "Fedora (6.10.3-200.fc40)".into(),
        kernel: "/vmlinuz-6.10.3-200.fc40".into(),
        initrds: vec!["/initramfs-6.10.3-200.fc40.img".into()],
        cmdline: "root=UUID=12 ro console=ttyS0 quiet".into(),
    };
    assert_eq!(started(&files, "kernelopts=console=ttyS0 quiet"), expected);
    assert_eq!(started(&files, "").cmdline, "root=UUID=12 ro");
}

#[test]
fn the_saved_entry_is_started_as_long_as_it_is_there() {
    let files = [file("m-6.9.7", "6.9.7"), file("m-6.10.3", "6.10.3")];
    assert_eq!(started(&files, "saved_entry=m-6.9.7").kernel, "/vmlinuz-6.9.7");
    assert_eq!(started(&files, "saved_entry=m-6.8.1").kernel, "/vmlinuz-6.10.3");
}

#[test]
fn entries_without_a_version_are_ordered_by_their_names_and_those_without_a_kernel_left_out() {
    let bare = |name: &str| EntryFile { name: name.into(), text: format!("linux\t/{name}\n") };
    assert_eq!(started(&[bare("debian-10"), bare("debian-9")], "").kernel, "/debian-10");
    let shell = EntryFile { name: "z".into(), text: "efi /shell.efi\nlinux\n".into() };
    assert_eq!(started(&[shell, bare("a")], "").kernel, "/a");
    assert_eq!(default_entry(&[], &Environment::default()), None);
}

proptest! {
    /// Sorting needs an order.
    #[test]
    fn versions_are_ordered(a in "[0-9a-c.-]{0,12}", b in "[0-9a-c.-]{0,12}", c in "[0-9a-c.-]{0,12}") {
        prop_assert_eq!(compare(&a, &b), compare(&b, &a).reverse());
        if compare(&a, &b).is_le() && compare(&b, &c).is_le() {
            prop_assert!(compare(&a, &c).is_le());
        }
    }

    #[test]
    fn a_greater_number_is_a_newer_version(one: u64, other: u64) {
        prop_assert_eq!(compare(&format!("6.{one}-a"), &format!("6.{other}-a")), one.cmp(&other));
    }

    #[test]
    fn any_text_is_read(text in "(linux|options|initrd|x)?[ \t].{0,60}\n.{0,60}") {
        let _ = default_entry(&[EntryFile { name: "a".into(), text }], &Environment::default());
    }
}
