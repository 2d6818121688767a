// SPDX-License-Identifier: MIT OR Apache-2.0
use proptest::prelude::*;

use super::*;

/// The parts of a Debian 12 host's file that concern kernels.
const DEBIAN: &str = r#"
if [ -s $prefix/grubenv ]; then
  set have_grubenv=true
  load_env
fi
if [ "${next_entry}" ] ; then
   set default="${next_entry}"
   set boot_once=true
else
   set default="0"
fi
function savedefault {
  if [ -z "${boot_once}" ]; then
    saved_entry="${chosen}"
  fi
}
menuentry 'Debian GNU/Linux' --class debian $menuentry_id_option 'gnulinux-simple-1234' {
	load_video
	if [ x$grub_platform = xxen ]; then insmod xzio; insmod lzopio; fi
	search --no-floppy --fs-uuid --set=root 1234
	echo	'Loading Linux 6.1.0-57-amd64 ...'
	linux	/boot/vmlinuz-6.1.0-57-amd64 root=UUID=1234 ro  quiet $vt_handoff
	initrd	/boot/microcode.cpio /boot/initrd.img-6.1.0-57-amd64
}
submenu 'Advanced options for Debian GNU/Linux' $menuentry_id_option 'gnulinux-advanced-1234' {
	menuentry 'Debian GNU/Linux, with Linux 6.1.0-57-amd64' --class debian $menuentry_id_option 'gnulinux-57' {
		linux	/boot/vmlinuz-6.1.0-57-amd64 root=UUID=1234 ro
	}
	menuentry 'Debian GNU/Linux, with Linux 6.1.0-56-amd64' --class debian $menuentry_id_option 'gnulinux-56' {
		linux	(hd0,gpt1)/boot/vmlinuz-6.1.0-56-amd64 root=UUID=1234 ro "a b"
		initrd	($root)/boot/initrd.img-6.1.0-56-amd64
	}
}
menuentry 'UEFI Firmware Settings' --id=fwsetup {
	fwsetup
}
"#;

fn entry(text: &str, environment: &str) -> Entry {
    default_entry(text, &Environment::parse(environment)).expect("there is an entry")
}

fn with_default(value: &str) -> String {
    DEBIAN.replace(r#"set default="0""#, &format!("set default=\"{value}\""))
}

#[test]
fn the_first_entry_is_started_with_its_command_line_and_all_parts_of_its_initrd() {
    let expected = Entry {
        title: "Debian GNU/Linux".into(),
        kernel: "/boot/vmlinuz-6.1.0-57-amd64".into(),
        initrds: vec!["/boot/microcode.cpio".into(), "/boot/initrd.img-6.1.0-57-amd64".into()],
        cmdline: "root=UUID=1234 ro quiet".into(),
    };
    assert_eq!(entry(DEBIAN, ""), expected);
}

#[test]
fn a_default_is_a_number_a_title_or_an_identifier_also_in_a_submenu() {
    let older = "/boot/vmlinuz-6.1.0-56-amd64";
    for path in ["1>1", "gnulinux-advanced-1234>gnulinux-56"] {
        assert_eq!(entry(&with_default(path), "").kernel, older, "{path}");
    }
    let title = "Advanced options for Debian GNU/Linux>Debian GNU/Linux, with Linux 6.1.0-56-amd64";
    let of_title = entry(&with_default(title), "");
    assert_eq!(
        (of_title.cmdline.as_str(), &of_title.initrds[0][..]),
        ("root=UUID=1234 ro a b", "/boot/initrd.img-6.1.0-56-amd64")
    );
    assert_eq!(entry(&with_default("1"), "").title, "Debian GNU/Linux, with Linux 6.1.0-57-amd64");
}

#[test]
fn a_default_that_grub_has_saved_is_read() {
    let text = with_default("${saved_entry}");
    let saved = "# GRUB Environment Block\nsaved_entry=gnulinux-advanced-1234>gnulinux-56\n####";
    assert_eq!(entry(&text, saved).kernel, "/boot/vmlinuz-6.1.0-56-amd64");
    assert_eq!(entry(&text, "next_entry=1>1").kernel, "/boot/vmlinuz-6.1.0-57-amd64");
}

#[test]
fn a_default_that_is_not_there_or_starts_no_linux_makes_way_for_the_first() {
    for path in ["9", "0>1", "1>9", "2", "fwsetup", "1>0>0"] {
        assert_eq!(entry(&with_default(path), "").title, "Debian GNU/Linux", "{path}");
    }
}

#[test]
fn a_file_that_offers_no_linux_offers_nothing() {
    for text in ["", "menuentry 'a' {", "menuentry 'a' {\n chainloader +1\n}", "}\n}\n}", "submenu a {\n}"] {
        assert_eq!(default_entry(text, &Environment::default()), None, "{text:?}");
    }
    let unfinished = "submenu a {\nmenuentry b {\nlinux /vmlinuz quiet";
    assert_eq!(entry(unfinished, "").kernel, "/vmlinuz");
}

/// Lines of which configurations are made.
const LINES: [&str; 8] = [
    "menuentry 'a' {",
    "submenu b {",
    "if x; then {",
    "}",
    "linux /k w",
    "initrd /i",
    "set default=\"1>0\"",
    "set default=a",
];

/// One of them, or a line of another kind.
fn line() -> impl Strategy<Value = String> {
    prop_oneof![prop::sample::select(&LINES[..]).prop_map(str::to_owned), ".{0,40}"]
}

proptest! {
    #[test]
    fn an_entry_that_is_found_has_a_kernel(lines in prop::collection::vec(line(), 0..60)) {
        let text = lines.join("\n");
        if let Some(entry) = default_entry(&text, &Environment::default()) {
            prop_assert!(!entry.kernel.is_empty());
        }
    }
}
