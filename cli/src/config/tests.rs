// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of `host.toml`, and its messages as they are read.

use std::fs;

use tempfile::TempDir;

use super::*;

mod beside;
mod boot;
mod control;
mod cpus;
mod devices;
mod disks;
mod functions;
mod networks;
mod smbios;
mod sockets;

/// A folder with a kernel of 1 KiB and an initrd of 3 MiB.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("vmlinuz"), [0; 1024]).expect("written");
    fs::write(folder.path().join("initrd.img"), vec![0; 3 << 20]).expect("written");
    folder
}

fn load(text: &str) -> Result<Config, String> {
    let folder = folder();
    let path = folder.path().join("host.toml");
    fs::write(&path, text).expect("written");
    let prefix = format!("{}/", folder.path().display());
    Config::load(&path).map_err(|error| error.to_string().replace(&prefix, ""))
}

/// The first of several messages.
fn first(result: Result<Config, String>) -> String {
    result.expect_err("bad").lines().next().expect("a message").to_owned()
}

/// The message for a guest with `lines` besides name, kernel and memory.
fn message(lines: &str) -> String {
    load(&format!("[[guest]]\nname = \"a\"\nkernel = \"vmlinuz\"\nmemory = \"64MiB\"\n{lines}\n")).expect_err("bad")
}

#[test]
fn a_whole_file_is_understood() {
    let config = load(
        "[host]\ncpus = 4\nmemory = \"4GiB\"\nwhen_done = \"debug-exit\"\ncmdline = \"log=debug\"\n\
         [[guest]]\nname = \"debian\"\nkernel = \"vmlinuz\"\ninitrd = \"initrd.img\"\ncmdline = \"console=ttyS0\"\n\
         vcpus = 2\nmemory = \"512MiB\"\ndebug_exit = true\non_panic = \"dump\"\nhung_s = 3\nautostart = \
         false\nmodules = [\"vmlinuz\"]\n",
    )
    .expect("good");
    assert_eq!((config.host.cpus, config.host.memory), (4, Size::mebibytes(4096)));
    assert_eq!((config.host.when_done, config.host.cmdline.as_str()), (WhenDone::DebugExit, "log=debug"));
    let guest = &config.guests[0];
    assert!(
        guest.kernel.ends_with("vmlinuz") && guest.initrd.as_ref().is_some_and(|path| path.ends_with("initrd.img"))
    );
    assert_eq!((guest.vcpus, guest.memory, guest.modules.len()), (2, Size::mebibytes(512), 1));
    assert!(guest.debug_exit && !guest.autostart);
    assert_eq!((guest.on_panic, guest.hung_s), (OnPanic::Dump, 3));
}

#[test]
fn defaults_suit_a_first_guest() {
    let config = load("[[guest]]\nname = \"a\"\nkernel = \"vmlinuz\"\nmemory = \"64MiB\"").expect("good");
    assert_eq!((config.host.cpus, config.host.when_done), (2, WhenDone::PowerOff));
    assert!(config.guests[0].autostart && config.guests[0].vcpus == 1);
    assert_eq!((config.guests[0].on_panic, config.guests[0].hung_s), (OnPanic::Throttle, 10));
}

#[test]
fn a_misspelt_key_is_named_with_its_line() {
    assert_eq!(
        message("kernal = \"x\""),
        "host.toml:5:1: guest \"a\": unknown key \"kernal\"; did you mean \"kernel\"?"
    );
    assert_eq!(first(load("[hots]")), "host.toml:1:2: unknown key \"hots\"; did you mean \"host\"?");
    assert_eq!(
        first(load("[machine]")),
        "host.toml:1:2: unknown key \"machine\"; the keys here are host, trust, network, guest"
    );
}

#[test]
fn a_misspelt_value_is_named_with_its_line() {
    let expected = "host.toml:2:13: [host]: when_done = \"powerof\" is unknown; did you mean \"poweroff\"? (possible \
                    are stay, poweroff, debug-exit)";
    assert_eq!(first(load("[host]\nwhen_done = \"powerof\"")), expected);
}

#[test]
fn a_policy_that_does_not_exist_is_named_with_those_that_do() {
    let expected =
        "host.toml:5:12: guest \"a\": on_panic = \"halt\" is unknown; possible are throttle, stop, reset, dump, ignore";
    assert_eq!(message("on_panic = \"halt\""), expected);
}

#[test]
fn a_missing_key_is_named() {
    let error = load("[[guest]]\nname = \"a\"\nmemory = \"1MiB\"").expect_err("no kernel");
    assert_eq!(error, "host.toml:1:1: guest \"a\": the key \"kernel\" is missing; add it");
}

#[test]
fn a_file_that_is_not_there_is_named_with_its_neighbour() {
    let with = |kernel: &str| load(&format!("[[guest]]\nname = \"a\"\nkernel = \"{kernel}\"\nmemory = \"64MiB\""));
    let expected = "host.toml:3:10: guest \"a\": the kernel \"vmlinux\" does not exist; did you mean \"vmlinuz\"?";
    assert_eq!(with("vmlinux"), Err(expected.to_owned()));
    let expected = "host.toml:3:10: guest \"a\": the kernel \"no/where\" does not exist; correct the path (it is \
                    relative to this file)";
    assert_eq!(with("no/where"), Err(expected.to_owned()));
    assert!(with(".").expect_err("a folder").contains("is no file"));
}

#[test]
fn files_larger_than_memory_are_refused() {
    let text = "[[guest]]\nname = \"a\"\nkernel = \"vmlinuz\"\ninitrd = \"initrd.img\"\nmemory = \"2MiB\"";
    let expected = "host.toml:5:10: guest \"a\": kernel and initrd are larger (3.0 MiB) than its memory (2 MiB); raise \
                    memory, to 7 MiB or more";
    assert_eq!(load(text), Err(expected.to_owned()));
}

#[test]
fn impossible_values_are_refused_with_the_possible_ones() {
    let cases = [
        ("hung_s = 3601", "host.toml:5:10: guest \"a\": hung_s = 3601 is not possible; write 0 to 3600"),
        ("vcpus = 0", "host.toml:5:9: guest \"a\": vcpus = 0 is not possible; write 1 to 512"),
        ("[host]\ncpus = 999", "host.toml:6:8: [host]: cpus = 999 is not possible; write 1 to 255"),
        (
            "[host]\nmemory = \"2\"",
            "host.toml:6:10: [host]: memory = \"2\" is no size; write a whole number and a unit, as \"512MiB\" \
             or \"2GiB\"",
        ),
        (
            "[[guest]]\nname = \"a\"\nkernel = \"vmlinuz\"\nmemory = \"64MiB\"",
            "host.toml:6:8: guest \"a\": another guest has the same name; rename one of them",
        ),
        (
            "[[guest]]\nname = \"host\"\nkernel = \"vmlinuz\"\nmemory = \"64MiB\"",
            "host.toml:6:8: guest \"host\": the name stands for the host's own lines; choose another",
        ),
        (
            "[[guest]]\nname = \"b\"\nkernel = \"vmlinuz\"\nmemory = \"64KiB\"",
            "host.toml:8:10: guest \"b\": memory = \"64KiB\" is not possible; write whole MiB, from 1MiB to 128TiB",
        ),
    ];
    for (lines, expected) in cases {
        assert_eq!(message(lines), expected);
    }
}

#[test]
fn trusted_keys_are_written_out_or_stand_in_files() {
    let key = seal::SecretKey::from_seed([7; 32]).public();
    let guest = "[[guest]]\nname = \"a\"\nkernel = \"vmlinuz\"\nmemory = \"64MiB\"";
    let with = |keys: &str| load(&format!("{guest}\n[trust]\nkeys = [{keys}]"));
    assert_eq!(with(&format!("\"{key}\"")).expect("good").trusted_keys, [key]);
    assert_eq!(with("").expect("good").trusted_keys, []);
    let error = with("\"vmlinuz\"").expect_err("no key");
    assert!(error.starts_with("host.toml:6:10: [trust]: vmlinuz: it is no public key"), "{error}");
    let many = vec![format!("\"{key}\""); 17].join(",");
    assert_eq!(with(&many), Err("host.toml:6:8: [trust]: there are 17 keys; at most 16 are possible".to_owned()));
}

#[test]
fn a_host_may_have_no_guests_at_first() {
    assert_eq!(load("").map(|config| config.guests), Ok(vec![]));
}

#[test]
fn text_that_is_no_toml_is_refused_with_its_line() {
    assert!(load("[host]\ncpus = = 2").expect_err("no toml").starts_with("host.toml:2:8: "));
}

#[test]
fn a_configuration_that_is_not_there_is_named() {
    let error = Config::load(Path::new("/nowhere/host.toml")).expect_err("nothing there").to_string();
    assert!(error.starts_with("/nowhere/host.toml: cannot be read") && error.contains("give the path"), "{error}");
}

#[test]
fn all_mistakes_are_reported_at_once_in_their_order() {
    let text = "[host]\ncpus = 0\nmemory = 256\ncmdline = \"log=debug smpp=serial\"\ncolour = \"red\"\n\
                [[guest]]\nname = \"a\"\nkernel = \"vmlinux\"\nmemory = 64\nvcpus = \"2\"\n\
                [[guest]]\nkernel = \"vmlinuz\"\nmemory = \"64MiB\"\nautostart = 1\n";
    let expected = [
        "host.toml:2:8: [host]: cpus = 0 is not possible; write 1 to 255",
        "host.toml:3:10: [host]: memory = 256 has no unit; write \"256MiB\" or \"256GiB\", with quotes",
        "host.toml:4:22: [host]: cmdline: the host has no option \"smpp=serial\"; did you mean \"smp\"?",
        "host.toml:5:1: [host]: unknown key \"colour\"; the keys here are cpus, memory, when_done, cmdline, image, \
         iommu, device",
        "host.toml:8:10: guest \"a\": the kernel \"vmlinux\" does not exist; did you mean \"vmlinuz\"?",
        "host.toml:9:10: guest \"a\": memory = 64 has no unit; write \"64MiB\" or \"64GiB\", with quotes",
        "host.toml:10:9: guest \"a\": vcpus is a text; write a whole number from 1 to 512, without quotes",
        "host.toml:11:1: the key \"name\" is missing; add it",
        "host.toml:14:13: autostart is a whole number; write true or false",
    ];
    assert_eq!(load(text).expect_err("bad").lines().collect::<Vec<_>>(), expected);
}

#[test]
fn all_places_that_are_no_toml_are_reported() {
    let error = load("[host]\ncpus = = 2\nmemory =\n").expect_err("no toml");
    let places: Vec<&str> = error.lines().map(|line| &line[..line.find(": ").expect("a place")]).collect();
    assert!(places.iter().any(|place| place.starts_with("host.toml:2:")), "{error}");
    assert!(places.iter().any(|place| place.starts_with("host.toml:3:")), "{error}");
}

#[test]
fn columns_count_characters() {
    let text = "[host]\ncmdline = \"\" # é\nwhen_done = \"é\"\n";
    assert!(first(load(text)).starts_with("host.toml:3:13: "), "{}", first(load(text)));
    assert!(first(load("trust.keys = \"é\" # \nhost.cpus = 0")).starts_with("host.toml:1:14: "));
}

#[test]
fn the_policy_on_downgrades_is_read() {
    let with = |line: &str| {
        load(&format!("[trust]\n{line}\n[[guest]]\nname = \"a\"\nkernel = \"vmlinuz\"\nmemory = \"64MiB\""))
    };
    assert_eq!(with("").expect("good").allow_downgrade, None);
    assert_eq!(with("allow_downgrade = false").expect("good").allow_downgrade, Some(false));
    let error = with("allow_downgrade = \"no\"").expect_err("no flag");
    assert_eq!(error, "host.toml:2:19: [trust]: allow_downgrade is a text; write true or false");
}
