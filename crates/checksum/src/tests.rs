// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;

#[test]
fn the_check_value_is_the_catalogues() {
    assert_eq!(CRC_32.checksum(b"123456789"), 0xcbf4_3926);
}
