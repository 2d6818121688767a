// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of `host.toml`, and its messages as they are read.

use std::fs;

use tempfile::TempDir;

use super::*;

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

/// The message for a guest with `lines` besides name, kernel and memory.
fn message(lines: &str) -> String {
    load(&format!("[[guest]]\nname = \"a\"\nkernel = \"vmlinuz\"\nmemory = \"64MiB\"\n{lines}\n")).expect_err("bad")
}

#[test]
fn a_whole_file_is_understood() {
    let config = load(
        "[host]\ncpus = 4\nmemory = \"4GiB\"\nwhen_done = \"debug-exit\"\ncmdline = \"log=debug\"\n\
         [[guest]]\nname = \"debian\"\nkernel = \"vmlinuz\"\ninitrd = \"initrd.img\"\ncmdline = \"console=ttyS0\"\n\
         vcpus = 2\nmemory = \"512MiB\"\ndebug_exit = true\non_panic = \"dump\"\nhung_s = 3\nautostart = false\nmodules = [\"vmlinuz\"]\n",
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
    assert_eq!(message("kernal = \"x\""), "host.toml:5: unknown key \"kernal\"; did you mean \"kernel\"?");
    assert_eq!(load("[hots]"), Err("host.toml:1: unknown key \"hots\"; did you mean \"host\"?".to_owned()));
    assert_eq!(
        load("[network]"),
        Err("host.toml:1: unknown key \"network\"; the keys here are host, trust, guest".to_owned())
    );
}

#[test]
fn a_misspelt_value_is_named_with_its_line() {
    let expected =
        "host.toml:2: unknown value \"powerof\"; did you mean \"poweroff\"? (possible are stay, poweroff, debug-exit)";
    assert_eq!(load("[host]\nwhen_done = \"powerof\""), Err(expected.to_owned()));
}

#[test]
fn a_policy_that_does_not_exist_is_named_with_those_that_do() {
    let expected = "host.toml:5: unknown value \"halt\"; possible are throttle, stop, reset, dump, ignore";
    assert_eq!(message("on_panic = \"halt\""), expected);
}

#[test]
fn a_missing_key_is_named() {
    let error = load("[[guest]]\nname = \"a\"\nmemory = \"1MiB\"").expect_err("no kernel");
    assert_eq!(error, "host.toml:1: the key \"kernel\" is missing; add it");
}

#[test]
fn a_file_that_is_not_there_is_named_with_its_neighbour() {
    let with = |kernel: &str| load(&format!("[[guest]]\nname = \"a\"\nkernel = \"{kernel}\"\nmemory = \"64MiB\""));
    let expected = "host.toml: guest \"a\": the kernel \"vmlinux\" does not exist; did you mean \"vmlinuz\"?";
    assert_eq!(with("vmlinux"), Err(expected.to_owned()));
    let expected = "host.toml: guest \"a\": the kernel \"no/where\" does not exist; correct the path (it is relative to this file)";
    assert_eq!(with("no/where"), Err(expected.to_owned()));
    assert!(with(".").expect_err("a folder").contains("is no file"));
}

#[test]
fn files_larger_than_memory_are_refused() {
    let text = "[[guest]]\nname = \"a\"\nkernel = \"vmlinuz\"\ninitrd = \"initrd.img\"\nmemory = \"2MiB\"";
    let expected = "host.toml: guest \"a\": kernel and initrd are larger (3.0 MiB) than its memory (2 MiB); raise memory, to 7 MiB or more";
    assert_eq!(load(text), Err(expected.to_owned()));
}

#[test]
fn impossible_values_are_refused_with_the_possible_ones() {
    let cases = [
        ("hung_s = 3601", "host.toml: guest \"a\": hung_s = 3601 is not possible; write 0 to 3600"),
        ("vcpus = 0", "host.toml: guest \"a\": vcpus = 0 is not possible; write 1 to 512"),
        ("[host]\ncpus = 999", "host.toml: [host]: cpus = 999 is not possible; write 1 to 255"),
        (
            "[host]\nmemory = \"2\"",
            "host.toml: [host]: memory = \"2\" is no size; write a whole number and a unit, as \"512MiB\" or \"2GiB\"",
        ),
        (
            "[[guest]]\nname = \"a\"\nkernel = \"vmlinuz\"\nmemory = \"64MiB\"",
            "host.toml: two guests are called \"a\"; rename one of them",
        ),
        (
            "[[guest]]\nname = \"host\"\nkernel = \"vmlinuz\"\nmemory = \"64MiB\"",
            "host.toml: guest \"host\": the name stands for the host's own lines; choose another",
        ),
        (
            "[[guest]]\nname = \"b\"\nkernel = \"vmlinuz\"\nmemory = \"64KiB\"",
            "host.toml: guest \"b\": memory = \"64KiB\" is not possible; write whole MiB, from 1MiB to 128TiB",
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
    assert!(error.starts_with("host.toml: [trust]: vmlinuz: it is no public key"), "{error}");
    let many = vec![format!("\"{key}\""); 17].join(",");
    assert_eq!(with(&many), Err("host.toml: [trust]: there are 17 keys; at most 16 are possible".to_owned()));
}

#[test]
fn a_host_without_guests_is_refused() {
    assert_eq!(
        load(""),
        Err("host.toml: there are no guests; add a [[guest]] with name, kernel and memory".to_owned())
    );
}

#[test]
fn text_that_is_no_toml_is_refused_with_its_line() {
    assert!(load("[host]\ncpus = = 2").expect_err("no toml").starts_with("host.toml:2: "));
}

#[test]
fn a_configuration_that_is_not_there_is_named() {
    let error = Config::load(Path::new("/nowhere/host.toml")).expect_err("nothing there").to_string();
    assert!(error.starts_with("/nowhere/host.toml: cannot be read") && error.contains("give the path"), "{error}");
}
