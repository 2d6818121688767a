// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bytes of version 5.
//!
//! This test fails when a message is encoded otherwise. A field or a variant that was added at the end lengthens lines
//! or adds some, and changes nothing else: check the difference that `BLESS=1 cargo test -p wire` makes.

use std::fmt::Write as _;
use std::string::String;

use super::{encoded, samples};
use crate::VERSION;

const GOLDEN_VERSION: u8 = 5;

/// One line of hexadecimal digits per sample.
const GOLDEN: &str = include_str!("golden_v5.txt");

#[test]
fn messages_change_at_their_end_only() {
    assert_eq!(VERSION, GOLDEN_VERSION, "record the bytes of the new version");
    let mut actual = String::new();
    for frame in samples::all() {
        for byte in encoded(&frame) {
            let _ = write!(actual, "{byte:02x}");
        }
        actual.push('\n');
    }
    if std::env::var_os("BLESS").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/tests/golden_v5.txt");
        std::fs::write(path, &actual).expect("the file can be written");
        return;
    }
    assert_eq!(actual, GOLDEN, "messages have changed");
}
