// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;

#[test]
fn cpus_with_their_apic_inside_need_no_delay() {
    for (vendor, family, microseconds) in [
        (Vendor::Intel, 5, 10_000),
        (Vendor::Intel, 6, 0),
        (Vendor::Intel, 7, 10_000),
        (Vendor::Intel, 0xf, 0),
        (Vendor::Intel, 0x13, 0),
        (Vendor::Amd, 6, 10_000),
        (Vendor::Amd, 0xf, 0),
        (Vendor::Amd, 0x1a, 0),
        (Vendor::Hygon, 0x18, 0),
        (Vendor::Other, 6, 10_000),
    ] {
        assert_eq!(after_init_us(vendor, family), microseconds, "{vendor:?} family {family:#x}");
    }
}

#[test]
fn the_family_includes_its_extension_only_behind_15() {
    assert_eq!(family(0x0006_06a6), 6, "Intel Ice Lake server");
    assert_eq!(family(0x00a2_0f12), 0x19, "AMD Zen 3");
    assert_eq!(family(0xffff_ffff), 0x10e);
}

#[test]
fn vendors_are_recognised_by_their_letters() {
    assert_eq!(Vendor::from_letters(b"AuthenticAMD"), Vendor::Amd);
    assert_eq!(Vendor::from_letters(b"TCGTCGTCGTCG"), Vendor::Other);
}

#[test]
fn a_cpu_that_answers_others_has_time_to() {
    let limits = Limits::new(3000, 0);
    assert!(limits.online > limits.initialisation + limits.tsc_sync);
    assert!(limits.tsc_sync > 2 * limits.answer);
    assert_eq!(limits.total(), 3000 * 1000 * 5500);
    assert_eq!(Limits::new(u64::MAX, u64::MAX).total(), u64::MAX, "absurd clocks do not overflow");
}
