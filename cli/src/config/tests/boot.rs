// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of `boot` and `drivers`.

use super::*;

const DISK: &str = "devices = [\"01:00.0\"]";

/// A guest's `boot` with these lines, beside a folder of a release's modules, `lib`.
fn boot(lines: &str) -> Result<Boot, String> {
    let folder = folder();
    fs::create_dir(folder.path().join("lib")).expect("made");
    fs::write(folder.path().join("lib/modules.builtin"), "").expect("written");
    let path = folder.path().join("host.toml");
    let text = format!("[[guest]]\nname = \"a\"\nkernel = \"vmlinuz\"\nmemory = \"64MiB\"\n{lines}\n");
    fs::write(&path, text).expect("written");
    let prefix = format!("{}/", folder.path().display());
    let relative = |boot| match boot {
        Boot::Disk { drivers, serial } => {
            Boot::Disk { drivers: drivers.strip_prefix(&prefix).expect("below the file's folder").to_owned(), serial }
        }
        Boot::Kernel => Boot::Kernel,
    };
    let config = Config::load(&path).map_err(|error| error.to_string().replace(&prefix, ""))?;
    Ok(relative(config.guests[0].boot.clone()))
}

#[test]
fn a_guest_starts_its_kernel_or_that_of_a_disk() {
    let of_disk = |serial: Option<&str>| Boot::Disk { drivers: "lib".into(), serial: serial.map(str::to_owned) };
    assert_eq!(boot(""), Ok(Boot::Kernel));
    assert_eq!(boot("boot = \"kernel\""), Ok(Boot::Kernel));
    assert_eq!(boot(&format!("boot = \"disk\"\ndrivers = \"lib\"\n{DISK}")), Ok(of_disk(None)));
    assert_eq!(boot(&format!("boot = \"disk:S-1\"\ndrivers = \"lib\"\n{DISK}")), Ok(of_disk(Some("S-1"))));
}

#[test]
fn contradicting_keys_of_boot_are_named_with_a_hint() {
    for (lines, expected) in [
        (
            "boot = \"disc\"",
            "5:8: guest \"a\": boot = \"disc\" is not possible; write \"kernel\", \"disk\", or \"disk:\"",
        ),
        ("boot = \"disk:a b\"", "5:8: guest \"a\": boot = \"disk:a b\" is not possible"),
        (
            "boot = \"disk\"",
            "5:8: guest \"a\": boot = \"disk\" needs drivers of disks; add drivers = \"/lib/modules/RELEASE\"",
        ),
        (
            "boot = \"disk\"\ndrivers = \"gone\"",
            "6:11: guest \"a\": drivers \"gone\" has no modules.builtin; give the folder",
        ),
        ("drivers = \"lib\"", "5:11: guest \"a\": drivers are for boot = \"disk\"; remove the key"),
        (
            "boot = \"disk\"\ndrivers = \"lib\"",
            "1:1: guest \"a\": boot = \"disk\", and it has no disk; add a [[guest.disk]]",
        ),
        (
            &format!("boot = \"disk\"\ndrivers = \"lib\"\ninitrd = \"initrd.img\"\n{DISK}"),
            "1:1: guest \"a\": boot = \"disk\" takes the initial RAM disk from the disk; remove initrd and modules",
        ),
    ] {
        let (message, expected) = (boot(lines).expect_err("bad"), format!("host.toml:{expected}"));
        assert!(message.lines().any(|line| line.starts_with(&expected)), "{lines}: {message}");
    }
}
