// SPDX-License-Identifier: MIT OR Apache-2.0
//! The checksum against another's.

use std::vec::Vec;

use crc::{CRC_32_ISO_HDLC, Crc};
use proptest::prelude::*;

use crate::crc32;

static WITNESS: Crc<u32> = Crc::<u32>::new(&CRC_32_ISO_HDLC);

#[test]
fn the_checksum_is_the_one_that_the_catalogue_gives() {
    assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    assert_eq!(crc32(b""), 0);
}

proptest! {
    #[test]
    fn any_file_has_the_checksum_that_others_compute(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let bytes: Vec<u8> = bytes;
        prop_assert_eq!(crc32(&bytes), WITNESS.checksum(&bytes));
    }
}
