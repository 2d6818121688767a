// SPDX-License-Identifier: MIT OR Apache-2.0
//! What firmware reserves, as one domain.

use std::vec::Vec;

use units::{PhysAddr, PhysRange};

use super::merged;
use crate::description::Reserved;

fn reserved(start: u64, end: u64, is_writable: bool) -> Reserved {
    let range = PhysRange::new(PhysAddr(start), PhysAddr(end)).unwrap();
    let (segment, first, last, offset) = (0, 8, 8, 0);
    let (is_readable, is_exclusion, defect) = (true, false, None);
    Reserved { range, segment, first, last, is_readable, is_writable, is_exclusion, defect, offset }
}

fn range(start: u64, end: u64) -> PhysRange {
    PhysRange::new(PhysAddr(start), PhysAddr(end)).unwrap()
}

#[test]
fn ranges_that_overlap_are_one_that_is_writable_if_one_of_them_is() {
    let all = [
        reserved(0x9000, 0xa000, false),
        reserved(0x1000, 0x3000, false),
        reserved(0x2000, 0x2800, true),
        reserved(0x3000, 0x4000, false),
    ];
    let expected: Vec<_> =
        [(range(0x1000, 0x3000), true), (range(0x3000, 0x4000), false), (range(0x9000, 0xa000), false)].into();
    assert_eq!(merged(all.iter()), expected);
}
