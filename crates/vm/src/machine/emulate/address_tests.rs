// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;
use crate::testing::FakeVcpu;
use crate::vcpu::{AccessRights, Segment, cr0};

const GP: Result<u64, Exception> = Err(Exception::GeneralProtection(0));
const SS: Result<u64, Exception> = Err(Exception::StackFault(0));

/// 32-bit protected mode, and one data segment.
fn protected(attributes: u16, limit: u32, base: u64) -> FakeVcpu {
    let mut vcpu = FakeVcpu { cr0: cr0::PE, ..FakeVcpu::default() };
    vcpu.segments = [Segment { selector: 8, rights: AccessRights::from_packed(attributes), limit, base }; 8];
    vcpu.segments[SegmentName::Cs as usize].rights = AccessRights::from_packed(0xc9b);
    vcpu
}

fn at(segment: SegmentName, offset: u64) -> Logical {
    Logical { segment, offset }
}

#[test]
fn a_limit_counts_for_the_last_byte() {
    let vcpu = protected(0xc93, 0xfff, 0x1_0000);
    assert_eq!(checked(&vcpu, at(SegmentName::Ds, 0xffc), 4, Purpose::Read), Ok(0x1_0ffc));
    assert_eq!(checked(&vcpu, at(SegmentName::Ds, 0xffd), 4, Purpose::Read), GP);
    assert_eq!(checked(&vcpu, at(SegmentName::Ss, 0xffd), 4, Purpose::Write), SS);
}

#[test]
fn a_segment_that_grows_down_begins_behind_its_limit() {
    let vcpu = protected(0xc97, 0xfff, 0);
    assert_eq!(checked(&vcpu, at(SegmentName::Ds, 0xfff), 1, Purpose::Read), GP);
    assert_eq!(checked(&vcpu, at(SegmentName::Ds, 0x1000), 4, Purpose::Read), Ok(0x1000));
    assert_eq!(checked(&vcpu, at(SegmentName::Ds, 0xffff_fffd), 4, Purpose::Read), GP, "past its top");
    let narrow = protected(0x897, 0xfff, 0);
    assert_eq!(checked(&narrow, at(SegmentName::Ds, 0xfffd), 4, Purpose::Read), GP, "a 16-bit segment's top");
}

#[test]
fn a_segment_permits_what_its_type_allows() {
    let read_only = protected(0xc91, 0xffff_ffff, 0);
    assert_eq!(checked(&read_only, at(SegmentName::Es, 0), 4, Purpose::Read), Ok(0));
    assert_eq!(checked(&read_only, at(SegmentName::Es, 0), 4, Purpose::Write), GP);
    let code = protected(0xc9b, 0xffff_ffff, 0);
    assert_eq!(checked(&code, at(SegmentName::Cs, 0), 4, Purpose::Read), Ok(0));
    assert_eq!(checked(&code, at(SegmentName::Cs, 0), 4, Purpose::Write), GP);
    let execute_only = protected(0xc99, 0xffff_ffff, 0);
    assert_eq!(checked(&execute_only, at(SegmentName::Ds, 0), 4, Purpose::Read), GP);
    let null = protected(0, 0, 0);
    assert_eq!(checked(&null, at(SegmentName::Es, 0), 1, Purpose::Read), GP);
}

#[test]
fn real_mode_knows_limits_and_no_types() {
    let mut vcpu = protected(0, 0xffff, 0x10_0000);
    vcpu.cr0 = 0;
    assert_eq!(checked(&vcpu, at(SegmentName::Ds, 0xfffe), 2, Purpose::Write), Ok(0x10_fffe));
    assert_eq!(checked(&vcpu, at(SegmentName::Ds, 0xffff), 2, Purpose::Write), GP);
}

#[test]
fn linear_addresses_outside_64_bit_mode_have_32_bits() {
    let vcpu = protected(0xc93, 0xffff_ffff, 0xffff_f000);
    assert_eq!(checked(&vcpu, at(SegmentName::Ds, 0x1004), 4, Purpose::Read), Ok(4));
    assert_eq!(further(&vcpu, 0xffff_f000, 0x1000), 0);
}
