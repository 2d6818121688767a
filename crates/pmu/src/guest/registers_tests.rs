// SPDX-License-Identifier: MIT OR Apache-2.0
use super::is_register;
use crate::guest::{amd_registers, intel_registers};

#[test]
fn a_register_is_the_counters_if_either_vendor_has_it() {
    for number in (0..0x1_0000).chain(0xc000_0000..0xc000_1000).chain(0xc001_0000..0xc001_2000) {
        let is_known = intel_registers::register(number).is_some() || amd_registers::register(number).is_some();
        assert_eq!(is_register(number), is_known, "{number:#x}");
    }
}
