// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of disks behind servers in other guests.

use bundle::{DiskConfig, DiskLimits};

use super::*;

/// A guest `storage` with this line (line 5), and `web` with one disk of these lines (from line 11 on).
fn disks(storage: &str, disk: &str) -> Result<Vec<DiskConfig>, String> {
    let guest = |name| format!("[[guest]]\nname = \"{name}\"\nkernel = \"vmlinuz\"\nmemory = \"64MiB\"\n");
    let text = format!("{}{storage}\n{}[[guest.disk]]\n{disk}\n", guest("storage"), guest("web"));
    load(&text).map(|mut config| config.guests.remove(1).disks)
}

#[test]
fn a_disk_is_an_export_and_the_rest_is_usual() {
    let usual = DiskConfig {
        cid: 3,
        port: 10_809,
        export: "web-root".to_owned(),
        is_read_only: false,
        is_write_back: false,
        timeout_s: 60,
        serial: String::new(),
        limits: DiskLimits::default(),
    };
    assert_eq!(disks("vsock = true", "nbd = \"storage:web-root\""), Ok(vec![usual.clone()]));
    let all = "nbd = \"storage:\"\nport = 7\nread-only = true\nserial = \"a-1\"\ntimeout = 5\ncache = \"writeback\"\n\
               iops = 500\nrate = \"10MiB/s\"";
    let (export, serial) = (String::new(), "a-1".to_owned());
    let (port, timeout_s, is_read_only, is_write_back) = (7, 5, true, true);
    let limits = DiskLimits { requests_per_s: Some(500), bytes_per_s: Some(10 << 20) };
    let other = DiskConfig { cid: 9, port, export, serial, timeout_s, is_read_only, is_write_back, limits };
    assert_eq!(disks("vsock = { cid = 9 }", all), Ok(vec![other]));
}

#[test]
fn mistakes_name_the_place_and_a_hint() {
    let good = "nbd = \"storage:a\"";
    let label = "guest \"web\": [[guest.disk]] 1:";
    for (storage, disk, expected) in [
        (
            "vsock = true",
            "nbd = \"storage\"",
            "11:7: {}: nbd = \"storage\" names no export; write \"GUEST:EXPORT\", as \"storage:web-root\"",
        ),
        (
            "vsock = true",
            "nbd = \"storag:a\"",
            "11:7: {}: nbd: there is no guest \"storag\"; did you mean \"storage\"?",
        ),
        (
            "vsock = true",
            "nbd = \"web:a\"",
            "11:7: {}: nbd: a guest's own server cannot be its disk's; name another guest",
        ),
        ("", good, "11:7: {}: nbd: the guest \"storage\" has no sockets; add `vsock = true` to it"),
        ("vsock = true", &format!("{good}\nport = 0"), "12:8: {}: port = 0 is not possible; write 1 to 4294967294"),
        ("vsock = true", &format!("{good}\ntimeout = 0"), "12:11: {}: timeout = 0 is not possible; write 1 to 3600"),
        ("vsock = true", &format!("{good}\niops = 0"), "12:8: {}: iops = 0 is not possible; write 1 to 4294967295"),
        (
            "vsock = true",
            &format!("{good}\nrate = \"10MiB\""),
            "12:8: {}: rate = \"10MiB\" is no rate; write a whole number and a unit, as \"10MiB/s\"",
        ),
        (
            "vsock = true",
            &format!("{good}\ncache = \"none\""),
            "12:9: {}: cache = \"none\" is not possible; write \"writeback\", or leave it out for none",
        ),
        (
            "vsock = true",
            &format!("{good}\nserial = \"a b\""),
            "12:10: {}: serial = \"a b\" is not possible; write up to 20 printable characters without blanks",
        ),
        (
            "vsock = true",
            &format!("{good}\nread_only = true"),
            "12:1: {}: unknown key \"read_only\"; did you mean \"read-only\"?",
        ),
    ] {
        let expected = expected.replace("{}:", label);
        assert_eq!(disks(storage, disk), Err(format!("host.toml:{expected}")));
    }
}

#[test]
fn a_disk_without_a_server_and_a_fifth_disk_are_refused() {
    let missing = disks("vsock = true", "port = 1").expect_err("no nbd");
    assert!(missing.contains("nbd"), "{missing}");
    let many = ["nbd = \"storage:a\""; 5].join("\n[[guest.disk]]\n");
    let many = disks("vsock = true", &many).expect_err("five");
    assert!(many.contains("there are 5 disks; at most 4 are possible"), "{many}");
}
