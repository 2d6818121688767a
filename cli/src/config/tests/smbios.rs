// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of guests' SMBIOS tables.

use bundle::SmbiosConfig;

use super::*;

/// Guests `a`, `b`, …, each with a line more (lines 5, 10, …).
fn smbios(lines: &[&str]) -> Result<Vec<SmbiosConfig>, String> {
    let guest = |(name, line): (char, &&str)| {
        format!("[[guest]]\nname = \"{name}\"\nkernel = \"vmlinuz\"\nmemory = \"64MiB\"\n{line}\n")
    };
    let text: String = ('a'..).zip(lines).map(guest).collect();
    load(&text).map(|config| config.guests.into_iter().map(|guest| guest.smbios).collect())
}

#[test]
fn keys_of_smbios_are_read() {
    let line =
        "uuid = \"0F1E2D3C-4b5a-6978-8796-a5b4c3d2e1f0\"; serial = \"ds=nocloud\"; oem_strings = [\"a=b\", \"c\"]";
    let found = smbios(&[&line.replace("; ", "\n"), ""]).expect("good");
    assert_eq!(found[0].uuid().map(|uuid| uuid.to_string()).as_deref(), Some("0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"));
    assert_eq!(found[0].serial(), Some("ds=nocloud"));
    assert_eq!(found[0].oem_strings().collect::<Vec<_>>(), ["a=b", "c"]);
    assert_eq!(found[1], SmbiosConfig::default());
}

#[test]
fn mistakes_of_smbios_keys_are_named() {
    let long = format!("serial = \"{}\"", "9".repeat(256));
    let many = format!("oem_strings = [{}]", "\"a\", ".repeat(65));
    for (lines, expected) in [
        (
            &["uuid = \"0f1e\""][..],
            "5:8: guest \"a\": uuid = \"0f1e\" is no UUID; write 32 hexadecimal digits, as \
             \"0f1e2d3c-4b5a-4978-8796-a5b4c3d2e1f0\"",
        ),
        (
            &["uuid = \"00000000-0000-0000-0000-000000000000\""],
            "5:8: guest \"a\": uuid = \"00000000-0000-0000-0000-000000000000\" stands for no UUID; write another, or \
             leave the key out",
        ),
        (
            &["uuid = \"0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0\"", "uuid = \"0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0\""],
            "10:8: guest \"b\": another guest has the same uuid; change one of them",
        ),
        (
            &["serial = \"caf\u{e9}\""],
            "5:10: guest \"a\": serial = \"caf\u{e9}\" holds '\u{e9}'; SMBIOS has printable ASCII alone",
        ),
        (&["serial = \"\""], "5:10: guest \"a\": serial is empty; write a character at least, or leave it out"),
        (&[&long], "5:10: guest \"a\": serial has 256 characters; at most 255 are possible"),
        (
            &["oem_strings = [\"a\", \"b\\n\"]"],
            "5:15: guest \"a\": oem_strings: a text = \"b\\n\" holds '\\n'; SMBIOS has printable ASCII alone",
        ),
        (
            &[&many],
            "5:15: guest \"a\": oem_strings: there are 65 texts of 65 bytes; at most 64 of 8192 bytes together are \
             possible",
        ),
    ] {
        assert_eq!(smbios(lines), Err(format!("host.toml:{expected}")), "{lines:?}");
    }
}
