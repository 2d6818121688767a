// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of the sockets that guests have.

use bundle::{ControlRights, ControlRole, GuestControl, VsockConfig};

use super::*;

/// Guests `a`, `b`, …, each with a line more (lines 5, 10, …).
fn sockets(lines: &[&str]) -> Result<Vec<Option<VsockConfig>>, String> {
    let guest = |(name, line): (char, &&str)| {
        format!("[[guest]]\nname = \"{name}\"\nkernel = \"vmlinuz\"\nmemory = \"64MiB\"\n{line}\n")
    };
    let text: String = ('a'..).zip(lines).map(guest).collect();
    load(&text).map(|config| config.guests.into_iter().map(|guest| guest.vsock).collect())
}

fn vsock(cid: u32, peers: &[u32]) -> Option<VsockConfig> {
    Some(VsockConfig { cid, peers: peers.to_vec(), control: None })
}

#[test]
fn without_a_number_a_guest_gets_the_lowest_that_is_free() {
    let found = sockets(&["vsock = true", "vsock = false", "vsock = { cid = 3 }", "vsock = true", ""]);
    assert_eq!(found, Ok(vec![vsock(4, &[]), None, vsock(3, &[]), vsock(5, &[]), None]));
}

#[test]
fn peers_are_guests_by_their_names() {
    let found = sockets(&["vsock = { peers = [\"c\", \"b\"] }", "vsock = true", "vsock = { cid = 77 }"]);
    assert_eq!(found, Ok(vec![vsock(3, &[4, 77]), vsock(4, &[]), vsock(77, &[])]));
}

#[test]
fn a_guest_may_control_the_host() {
    let with = |role, rights| Some(VsockConfig { control: Some(GuestControl { role, rights }), ..vsock(3, &[])? });
    let dump = ControlRights { dump: true, devices: true, console: false };
    let found = sockets(&["vsock = { control = \"update\", rights = [\"devices\", \"dump\"] }"]);
    assert_eq!(found, Ok(vec![with(ControlRole::Update, dump)]));
    assert_eq!(
        sockets(&["vsock = { control = \"read\" }"]),
        Ok(vec![with(ControlRole::Read, ControlRights::default())])
    );
}

#[test]
fn mistakes_of_sockets_are_named() {
    for (lines, expected) in [
        (&["vsock = 3"][..], "5:9: guest \"a\": vsock is neither true nor a table; write true or { peers = [\"…\"] }"),
        (&["vsock = { cid = 2 }"], "5:17: guest \"a\": cid = 2 is not possible; write 3 to 4294967294"),
        (
            &["vsock = { cid = 9 }", "vsock = { cid = 9 }"],
            "10:9: guest \"b\": vsock: another guest has the cid 9; change one of them",
        ),
        (
            &["vsock = { peers = [\"storage\"] }", "vsock = true"],
            "5:21: guest \"a\": vsock: peers: there is no guest \"storage\"; add a [[guest]] with this name",
        ),
        (
            &["vsock = { peers = [\"a\"] }"],
            "5:21: guest \"a\": vsock: peers: a guest reaches itself without the host; remove its own name",
        ),
        (
            &["vsock = { peers = [\"b\"] }", ""],
            "5:21: guest \"a\": vsock: peers: the guest \"b\" has no sockets; add `vsock = true` to it",
        ),
        (
            &["vsock = { rights = [\"dump\"] }"],
            "5:20: guest \"a\": rights without a role do nothing; write control = \"read\" beside them",
        ),
        (&["vsock = { control = \"revoked\" }"], "5:21: guest \"a\": no guest is revoked; leave control out"),
        (
            &["vsock = { control = \"read\", rights = [\"dmp\"] }"],
            "5:38: guest \"a\": rights = \"dmp\" is unknown; did you mean \"dump\"? (possible are console, dump, devices)",
        ),
        (&["vsock = { peer = [] }"], "5:11: guest \"a\": unknown key \"peer\"; did you mean \"peers\"?"),
    ] {
        assert_eq!(sockets(lines), Err(format!("host.toml:{expected}")), "{lines:?}");
    }
}
