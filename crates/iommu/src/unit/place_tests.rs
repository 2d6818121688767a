// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory that firmware reserves, as one domain.

use std::vec::Vec;

use units::{PhysAddr, PhysRange};

use super::{MAX_NAMED, Place, merged};
use crate::description::testing::one_unit;
use crate::description::{Description, Kind, Reserved};

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

/// One unit for every function of segment 0, and this reserved memory.
fn description(reserved: &[Reserved]) -> Description {
    let mut description = one_unit(Kind::Amd, 0x4000, true);
    description.reserved.extend(reserved.iter().copied());
    description
}

fn place(description: &Description) -> Place<'_> {
    Place { description, number: 0, is_x2apic: false }
}

#[test]
fn memory_reserved_for_every_function_does_not_cost_the_hosts() {
    let all = Reserved { first: 0, last: u16::MAX, ..reserved(0x1000, 0x2000, true) };
    let description = description(&[all; 64]);
    assert_eq!(place(&description).reserved_sources().len(), MAX_NAMED);
}

#[test]
fn memory_that_may_not_be_read_is_not_mapped() {
    let one = reserved(0x1000, 0x2000, false);
    let hidden = Reserved { is_readable: false, ..reserved(0x5000, 0x6000, true) };
    let description = description(&[one, hidden]);
    assert_eq!(merged(place(&description).reserved()), [(range(0x1000, 0x2000), false)]);
}
