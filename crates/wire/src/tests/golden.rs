// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bytes of version 4.
//!
//! This test fails when the format has changed: raise [`crate::VERSION`], then record the new bytes by
//! `BLESS=1 cargo test -p wire`.

use std::fmt::Write as _;
use std::string::String;

use super::{encoded, samples};
use crate::VERSION;

const GOLDEN_VERSION: u8 = 4;

/// One line of hexadecimal digits per sample.
const GOLDEN: &str = include_str!("golden_v4.txt");

#[test]
fn the_format_changes_only_with_its_version() {
    assert_eq!(VERSION, GOLDEN_VERSION, "record the bytes of the new version");
    let mut actual = String::new();
    for frame in samples::all() {
        for byte in encoded(&frame) {
            let _ = write!(actual, "{byte:02x}");
        }
        actual.push('\n');
    }
    if std::env::var_os("BLESS").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/tests/golden_v4.txt");
        std::fs::write(path, &actual).expect("the file can be written");
        return;
    }
    assert_eq!(actual, GOLDEN, "the format has changed: raise VERSION and record the new bytes");
}
