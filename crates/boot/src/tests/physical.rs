// SPDX-License-Identifier: MIT OR Apache-2.0
use units::{PhysAddr, PhysRange};

use crate::may_be_read;

const IMAGE: (u64, u64) = (0x20_0000, 0x40_0000);

fn range(start: u64, end: u64) -> PhysRange {
    PhysRange::new(PhysAddr(start), PhysAddr(end)).expect("it runs forwards")
}

fn may(start: u64, end: u64) -> bool {
    may_be_read(range(start, end), range(IMAGE.0, IMAGE.1))
}

#[test]
fn a_structure_in_the_image_is_not_read() {
    assert!(may(0x1f_0000, 0x20_0000) && may(0x40_0000, 0x40_1000));
    for (start, end) in [(0x20_0000, 0x20_0001), (0x1f_ffff, 0x20_0001), (0x3f_ffff, 0x50_0000), (0x10_0000, 0x60_0000)]
    {
        assert!(!may(start, end), "{start:#x} to {end:#x}");
    }
}

#[test]
fn a_structure_in_a_device_or_nowhere_is_not_read() {
    for (start, end) in
        [(0xb_8000, 0xb_8100), (0x9_ffff, 0xa_0001), (0xfee0_0300, 0xfee0_0304), (0xfed0_00f0, 0xfed0_00f8), (0, 64)]
    {
        assert!(!may(start, end), "{start:#x} to {end:#x}");
    }
}

#[test]
fn what_firmware_keeps_in_its_areas_is_read() {
    for (start, end) in
        [(0x9_fc00, 0xa_0000), (0xe_0000, 0x10_0000), (0x7ffe_0000, 0x7fff_0000), (0xffff_0000, 1 << 32)]
    {
        assert!(may(start, end), "{start:#x} to {end:#x}");
    }
}
