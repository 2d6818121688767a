// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of sockets between guests.

use super::reading::VERSION_AT;
use super::*;
use crate::{ControlRights, ControlRole, GuestControl};

fn vsock(cid: u32, peers: &[u32]) -> Option<VsockConfig> {
    Some(VsockConfig { cid, peers: peers.to_vec(), control: None })
}

/// A guest with sockets that may do this.
fn control(cid: u32, role: ControlRole, rights: ControlRights) -> Option<VsockConfig> {
    Some(VsockConfig { cid, peers: vec![], control: Some(GuestControl { role, rights }) })
}

/// Guests with these socket devices.
fn built(sockets: Vec<Option<VsockConfig>>) -> Result<Vec<u8>, BundleError> {
    let guest = |(number, vsock): (usize, _)| GuestConfig { name: number.to_string(), vsock, ..debian() };
    write::build(HOST, sockets.into_iter().enumerate().map(guest).collect(), &FILES)
}

#[test]
fn sockets_are_read_guest_by_guest() {
    let sockets = vec![vsock(3, &[9]), None, vsock(9, &[])];
    let bytes = built(sockets.clone()).expect("good");
    assert_eq!(bytes[VERSION_AT..][..2], MANIFEST_VERSION.to_le_bytes());
    let bundle = Bundle::parse(&bytes).expect("good");
    let found: Vec<_> = bundle.manifest().guests.iter().map(|guest| guest.vsock.clone()).collect();
    assert_eq!(found, sockets);
}

#[test]
fn what_guests_may_ask_of_the_host_is_read_guest_by_guest() {
    let rights = ControlRights { dump: true, ..ControlRights::default() };
    let sockets = vec![control(3, ControlRole::Operate, rights), None, vsock(9, &[])];
    let bytes = built(sockets.clone()).expect("good");
    assert_eq!(bytes[VERSION_AT..][..2], MANIFEST_VERSION.to_le_bytes());
    let bundle = Bundle::parse(&bytes).expect("good");
    let found: Vec<_> = bundle.manifest().guests.iter().map(|guest| guest.vsock.clone()).collect();
    assert_eq!(found, sockets);
}

#[test]
fn without_sockets_a_manifest_stays_as_it_was() {
    let bytes = built(vec![None, None]).expect("good");
    assert_eq!(bytes[VERSION_AT..][..2], OLDEST_MANIFEST_VERSION.to_le_bytes());
}

#[test]
fn impossible_sockets_are_refused() {
    let many = (3..12).map(|cid| control(cid, ControlRole::Read, ControlRights::default())).collect();
    let revoked = control(3, ControlRole::Revoked, ControlRights::default());
    let refused = |sockets| built(sockets).expect_err("bad").problem.to_string();
    for (sockets, reason) in [
        (vec![vsock(2, &[])], "reserved"),
        (vec![vsock(u32::MAX, &[])], "reserved"),
        (vec![vsock(3, &[]), vsock(3, &[])], "of another guest"),
        (vec![vsock(3, &[3])], "no other guest"),
        (vec![vsock(3, &[4]), None], "no other guest"),
        (many, "more than 8 guests"),
        (vec![revoked], "revoked key"),
        (vec![vsock(3, &[4; 65]), vsock(4, &[])], "too many peers"),
    ] {
        let problem = refused(sockets);
        assert!(problem.contains(reason), "{problem}");
    }
}

#[test]
fn a_digest_differs_where_sockets_do() {
    let with = |vsock| GuestConfig { vsock, ..debian() }.digest();
    let read = control(3, ControlRole::Read, ControlRights::default());
    let digests = [with(None), with(read), with(vsock(3, &[])), with(vsock(4, &[])), with(vsock(3, &[4]))];
    let different: std::collections::BTreeSet<u64> = digests.into_iter().collect();
    assert_eq!(different.len(), digests.len());
}
