// SPDX-License-Identifier: MIT OR Apache-2.0
use std::string::ToString;

use proptest::prelude::*;

use super::*;

fn range(start: u64, end: u64) -> PhysRange {
    PhysRange::new(PhysAddr(start), PhysAddr(end)).unwrap()
}

#[test]
fn a_range_never_runs_backwards_nor_past_the_end() {
    assert_eq!(PhysRange::new(PhysAddr(2), PhysAddr(1)), None);
    assert_eq!(PhysRange::from_start(PhysAddr(u64::MAX), 2), None);
    assert_eq!(PhysAddr(u64::MAX).align_up(PAGE_BYTES), None);
    assert_eq!(range(u64::MAX - 5, u64::MAX).aligned_outwards(PAGE_BYTES), None);
}

#[test]
fn sizes_print_in_the_largest_unit_and_never_too_large() {
    for (bytes, text) in [
        (0, "0 bytes"),
        (1, "1 byte"),
        (4095, "3.9 KiB"),
        (640 * KIB, "640 KiB"),
        (GIB + GIB / 2, "1.5 GiB"),
        (2 * GIB - 1, "1.9 GiB"),
        (2048 * GIB, "2048 GiB"),
    ] {
        assert_eq!(ByteSize(bytes).to_string(), text);
    }
    assert_eq!(ByteSize(u64::MAX).to_string(), "17179869183.9 GiB");
}

#[test]
fn ranges_print_as_firmware_tables_do() {
    assert_eq!(range(MIB, 2 * MIB).to_string(), "0x100000-0x1fffff (1 MiB)");
    assert_eq!(range(MIB, MIB).to_string(), "0x100000 (empty)");
}

#[test]
fn an_empty_intersection_is_none() {
    assert_eq!(range(0, 4).intersection(range(4, 8)), None);
    assert_eq!(range(0, 5).intersection(range(4, 8)), Some(range(4, 5)));
    assert!(!range(0, 4).contains(PhysAddr(4)));
    assert!(range(0, 4).contains_range(range(1, 4)));
}

proptest! {
    #[test]
    fn aligning_inwards_shrinks_and_outwards_grows(start: u64, bytes in 0u64..GIB, size in 0usize..3) {
        let alignment = PageSize::ALL[size].bytes();
        if let Some(range) = PhysRange::from_start(PhysAddr(start), bytes) {
            let inner = range.aligned_inwards(alignment);
            prop_assert!(inner.is_empty() || (range.contains_range(inner) && inner.is_aligned(alignment)));
            if let Some(outer) = range.aligned_outwards(alignment) {
                prop_assert!(outer.contains_range(range) && outer.is_aligned(alignment));
                prop_assert!(outer.bytes() - inner.bytes() <= 2 * alignment);
            }
        }
    }
}
