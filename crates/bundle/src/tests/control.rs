// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keys of the control channel.

use std::string::{String, ToString};
use std::vec;
use std::vec::Vec;

use super::reading::VERSION_AT;
use super::{FILES, HOST, debian};
use crate::{
    Bundle, BundleError, ControlKeyConfig, ControlRole, HostConfig, MANIFEST_VERSION, OLDEST_MANIFEST_VERSION, write,
};

fn key(number: u8, name: &str, role: ControlRole) -> ControlKeyConfig {
    ControlKeyConfig { name: name.to_string(), key: [number; 32], role }
}

fn built(control_keys: Vec<ControlKeyConfig>, is_serial_open: bool) -> Result<Vec<u8>, BundleError> {
    write::build(HostConfig { control_keys, is_serial_open, ..HOST }, vec![debian()], &FILES)
}

#[test]
fn control_keys_are_read_with_their_roles() {
    let keys = vec![key(1, "ops", ControlRole::Operate), key(2, "old", ControlRole::Revoked)];
    for is_serial_open in [false, true] {
        let bytes = built(keys.clone(), is_serial_open).expect("good");
        assert_eq!(bytes[VERSION_AT..][..2], MANIFEST_VERSION.to_le_bytes());
        let host = Bundle::parse(&bytes).expect("good").manifest().host.clone();
        assert_eq!((&host.control_keys, host.is_serial_open), (&keys, is_serial_open));
        assert_eq!(host.demands_sessions(), !is_serial_open);
    }
}

#[test]
fn without_control_keys_a_manifest_stays_as_it_was() {
    let bytes = built(vec![], false).expect("good");
    assert!(bytes[VERSION_AT..][..2] == OLDEST_MANIFEST_VERSION.to_le_bytes());
    assert!(!Bundle::parse(&bytes).expect("good").manifest().host.demands_sessions());
}

#[test]
fn impossible_control_keys_are_refused() {
    let operate = ControlRole::Operate;
    let many = (0..17).map(|number| key(number, &number.to_string(), operate)).collect();
    for (keys, reason) in [
        (many, "more than 16"),
        (vec![key(1, "", operate)], "bad name"),
        (vec![key(1, &String::from("x").repeat(33), operate)], "bad name"),
        (vec![key(1, "a", operate), key(2, "a", operate)], "name of another"),
        (vec![key(1, "a", operate), key(1, "b", operate)], "stands twice"),
    ] {
        let problem = built(keys, false).expect_err("bad").problem.to_string();
        assert!(problem.contains(reason), "{problem}");
    }
}
