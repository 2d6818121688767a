// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of the host's PCI functions that guests get.

use bundle::AssignedConfig;

use super::*;

/// The guests of a file with these lines in the first guest, after its lines 1 to 4.
fn guests(lines: &str) -> Result<Vec<Guest>, String> {
    let text = format!("[[guest]]\nname = \"a\"\nkernel = \"vmlinuz\"\nmemory = \"64MiB\"\n{lines}\n");
    load(&text).map(|config| config.guests)
}

fn assigned(selector: &str, without_reset: bool) -> AssignedConfig {
    AssignedConfig { selector: selector.to_owned(), without_reset, gsi: None, virtual_functions: 0 }
}

#[test]
fn functions_are_chosen_by_address_or_model() {
    let lines = "devices = [\"0000:01:00.0\", \"2:0.1\", \"8086:10D3\", \"8086:10ca#2\",\n\
                 { function = \"04:00.0\", reset = \"none\" }, { function = \"05:00.0\" }]";
    let expected = [
        assigned("0000:01:00.0", false),
        assigned("0000:02:00.1", false),
        assigned("8086:10d3", false),
        assigned("8086:10ca#2", false),
        assigned("0000:04:00.0", true),
        assigned("0000:05:00.0", false),
    ];
    assert_eq!(guests(lines).expect("good")[0].functions, expected);
    assert_eq!(guests("").expect("good")[0].functions, []);
}

#[test]
fn a_function_may_have_the_interrupt_of_its_line() {
    let lines =
        "devices = [{ function = \"04:00.0\", gsi = 16 }, { function = \"05:00.0\", reset = \"none\", gsi = 0 }]";
    let with = |selector, without_reset, gsi| AssignedConfig { gsi: Some(gsi), ..assigned(selector, without_reset) };
    let expected = [with("0000:04:00.0", false, 16), with("0000:05:00.0", true, 0)];
    assert_eq!(guests(lines).expect("good")[0].functions, expected);
}

#[test]
fn a_selector_of_no_function_is_refused_at_its_place() {
    for (lines, expected) in [
        (
            "devices = [\"01:00.0\", \"01:00\"]",
            "host.toml:5:23: guest \"a\": devices = \"01:00\" names no PCI function; write an address (01:00.0), \
             vendor:device (8086:10d3), or the second of these (8086:10d3#2)",
        ),
        (
            "devices = [\"8086:10ca#0\"]",
            "host.toml:5:12: guest \"a\": devices = \"8086:10ca#0\" has a bad number; write #1 for the first, by \
             rising address, up to #65535",
        ),
        (
            "devices = [\n  \"nvme:\",\n]",
            "host.toml:6:3: guest \"a\": devices = \"nvme:\" has a bad serial number; write 1 to 20 printable characters \
             behind nvme:",
        ),
        ("devices = [7]", "host.toml:5:12: guest \"a\": devices is a whole number; write a text in quotes"),
        ("devices = \"01:00.0\"", "host.toml:5:11: guest \"a\": devices is a text; write a list: [\"…\"]"),
        ("devices = [{ reset = \"none\" }]", "host.toml:5:12: guest \"a\": the key \"function\" is missing; add it"),
        (
            "devices = [{ function = \"01:00.0\", reset = \"bus\" }]",
            "host.toml:5:44: guest \"a\": reset = \"bus\" is unknown; possible are none",
        ),
        (
            "devices = [{ function = \"01:00.0\", gsi = 4096 }]",
            "host.toml:5:42: guest \"a\": gsi = 4096 is not possible; write 0 to 4095",
        ),
        (
            "devices = [{ function = \"8086\", rest = \"none\" }]",
            "host.toml:5:25: guest \"a\": function = \"8086\" names no PCI function; write an address (01:00.0), \
             vendor:device (8086:10d3), or the second of these (8086:10d3#2)\n\
             host.toml:5:33: guest \"a\": unknown key \"rest\"; did you mean \"reset\"?",
        ),
    ] {
        assert_eq!(guests(lines), Err(expected.to_owned()), "{lines}");
    }
}

#[test]
fn a_guest_has_sixteen_functions_at_most() {
    let with = |count: usize| {
        let functions: Vec<String> = (0..count).map(|slot| format!("\"{slot:02x}:00.0\"")).collect();
        guests(&format!("devices = [\n{}]", functions.join(",\n")))
    };
    assert_eq!(with(16).expect("good")[0].functions.len(), 16);
    let expected = "host.toml:22:1: guest \"a\": devices: there are 17 functions; at most 16 are possible";
    assert_eq!(with(17), Err(expected.to_owned()));
}

#[test]
fn a_function_has_one_owner_at_a_time() {
    let other = |lines: &str| {
        let text = "[[guest]]\nname = \"b\"\nkernel = \"vmlinuz\"\nmemory = \"64MiB\"";
        guests(&format!("devices = [\"01:00.0\"]\n{text}\n{lines}"))
    };
    let expected = "host.toml:10:12: guest \"b\": devices: another guest that starts with the host has the function \
                    0000:01:00.0; remove it from one of them, or set autostart = false there";
    assert_eq!(other("devices = [\"0000:01:00.0\"]"), Err(expected.to_owned()));
    assert!(other("devices = [\"0000:01:00.0\"]\nautostart = false").is_ok());
    assert!(other("devices = [\"0000:01:00.1\"]").is_ok());
    let twice = "host.toml:5:23: guest \"a\": devices: the function 0000:01:00.0 stands twice; remove one of them";
    assert_eq!(guests("devices = [\"01:00.0\", \"1:0.0\"]"), Err(twice.to_owned()));
}
