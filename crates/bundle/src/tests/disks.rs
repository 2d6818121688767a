// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of disks behind servers in other guests.

use super::reading::VERSION_AT;
use super::*;

const STORAGE: u32 = 9;

fn disk() -> DiskConfig {
    let (export, serial) = ("web-root".to_string(), "web".to_string());
    let (is_read_only, is_write_back) = (false, true);
    DiskConfig {
        cid: STORAGE,
        port: 10_809,
        export,
        is_read_only,
        is_write_back,
        timeout_s: 60,
        serial,
        limits: DiskLimits::default(),
    }
}

/// Returns a storage guest, and one with these disks.
fn guests(disks: Vec<DiskConfig>) -> Vec<GuestConfig> {
    let vsock = Some(VsockConfig { cid: STORAGE, peers: vec![], control: None });
    vec![GuestConfig { name: "storage".to_string(), vsock, ..debian() }, GuestConfig { disks, ..debian() }]
}

fn built(disks: Vec<DiskConfig>) -> Result<Vec<u8>, BundleError> {
    write::build(HOST, guests(disks), &FILES)
}

#[test]
fn disks_are_read_guest_by_guest() {
    let disks = vec![disk(), DiskConfig { is_read_only: true, port: 1, ..disk() }];
    let bytes = built(disks.clone()).expect("good");
    assert_eq!(bytes[VERSION_AT..][..2], MANIFEST_VERSION.to_le_bytes());
    assert_eq!(Bundle::parse(&bytes).expect("good").manifest().guests, guests(disks));
}

#[test]
fn limits_are_read_disk_by_disk_and_raise_the_version() {
    let limited =
        |requests_per_s, bytes_per_s| DiskConfig { limits: DiskLimits { requests_per_s, bytes_per_s }, ..disk() };
    let disks = vec![disk(), limited(Some(500), None), limited(None, Some(10 << 20))];
    let bytes = built(disks.clone()).expect("good");
    assert_eq!(bytes[VERSION_AT..][..2], MANIFEST_VERSION.to_le_bytes());
    assert_eq!(Bundle::parse(&bytes).expect("good").manifest().guests, guests(disks));
}

#[test]
fn impossible_disks_are_refused() {
    let long = |bytes| "x".repeat(bytes);
    for (disks, reason) in [
        (vec![disk(); 5], "too many disks"),
        (vec![DiskConfig { cid: 8, ..disk() }], "no other guest with sockets"),
        (vec![DiskConfig { port: 0, ..disk() }], "reserved"),
        (vec![DiskConfig { port: u32::MAX, ..disk() }], "reserved"),
        (vec![DiskConfig { export: long(129), ..disk() }], "too long"),
        (vec![DiskConfig { serial: long(21), ..disk() }], "too long"),
        (vec![DiskConfig { timeout_s: 0, ..disk() }], "bad timeout"),
        (vec![DiskConfig { timeout_s: 3601, ..disk() }], "bad timeout"),
        (
            vec![DiskConfig { limits: DiskLimits { requests_per_s: Some(0), bytes_per_s: None }, ..disk() }],
            "do nothing",
        ),
        (
            vec![DiskConfig { limits: DiskLimits { requests_per_s: None, bytes_per_s: Some(0) }, ..disk() }],
            "do nothing",
        ),
    ] {
        let problem = built(disks).expect_err("bad").problem.to_string();
        assert!(problem.contains(reason), "{problem}");
    }
    let mut own = guests(vec![]);
    own[0].disks = vec![disk()];
    let problem = write::build(HOST, own, &FILES).expect_err("bad").problem.to_string();
    assert!(problem.contains("no other guest"), "{problem}");
}

#[test]
fn a_digest_differs_where_disks_do() {
    let with = |disks| GuestConfig { disks, ..debian() }.digest();
    let limits = DiskLimits { requests_per_s: Some(1), bytes_per_s: None };
    let limited = DiskConfig { limits, ..disk() };
    let digests =
        [vec![], vec![disk()], vec![disk(); 2], vec![DiskConfig { timeout_s: 9, ..disk() }], vec![limited]].map(with);
    let different: std::collections::BTreeSet<u64> = digests.into_iter().collect();
    assert_eq!(different.len(), digests.len());
}
