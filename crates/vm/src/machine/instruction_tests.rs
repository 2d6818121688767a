// SPDX-License-Identifier: MIT OR Apache-2.0
use proptest::prelude::*;

use super::{Usual, bitness, decode, fetch, skip, skip_if};
use crate::addr::Gpa;
use crate::memory::GuestMemory;
use crate::testing::{FakeMemory, FakeVcpu};
use crate::vcpu::{AccessRights, Exception, Segment, SegmentName, cr0, cr4, efer};

const CPUID: Usual = Usual::new(&[0x0f, 0xa2]);

fn at(rip: u64, code: &[u8]) -> (FakeVcpu, FakeMemory) {
    let memory = FakeMemory::new(0x2000);
    memory.write(Gpa(rip), code).unwrap();
    let mut vcpu = FakeVcpu { rip, ..FakeVcpu::default() };
    vcpu.segments[SegmentName::Cs as usize] =
        Segment { rights: AccessRights::from_packed(0xc9b), limit: u32::MAX, ..Segment::default() };
    (vcpu, memory)
}

#[test]
fn the_usual_encoding_is_skipped_without_decoding() {
    let (mut vcpu, memory) = at(0x100, &[0x0f, 0xa2]);
    skip(&mut vcpu, &memory, CPUID).unwrap();
    assert_eq!(vcpu.rip, 0x102);
}

#[test]
fn a_prefixed_encoding_is_decoded() {
    let (mut vcpu, memory) = at(0x100, &[0xf3, 0x66, 0x0f, 0xa2]);
    skip(&mut vcpu, &memory, CPUID).unwrap();
    assert_eq!(vcpu.rip, 0x104);
}

#[test]
fn the_end_of_the_instruction_is_the_cpu_s_where_it_reports_one() {
    let (mut vcpu, memory) = at(0x100, &[0x0f, 0xa2]);
    vcpu.next_rip = Some(0x777);
    skip(&mut vcpu, &memory, CPUID).unwrap();
    assert_eq!(vcpu.rip, 0x777);
}

#[test]
fn the_usual_encoding_is_recognised_anywhere_in_a_page() {
    for rip in 0xff0..=0x1000 {
        let (vcpu, memory) = at(rip, &[0x0f, 0xa2]);
        assert_eq!(skip_if(&mut vcpu.clone(), &memory, CPUID), rip != 0xfff, "{rip:#x}");
        assert!(!skip_if(&mut vcpu.clone(), &memory, Usual::new(&[0x0f, 0xa3])), "{rip:#x}");
    }
}

#[test]
fn an_instruction_across_two_pages_is_read_whole() {
    let (mut vcpu, memory) = at(0xfff, &[0x0f, 0xa2]);
    skip(&mut vcpu, &memory, CPUID).unwrap();
    assert_eq!(vcpu.rip, 0x1001);
}

#[test]
fn an_instruction_at_the_end_of_memory_is_read_as_far_as_it_goes() {
    let (vcpu, memory) = at(0x1fff, &[0x90]);
    let bytes = fetch(&vcpu, &memory).unwrap();
    assert_eq!(bytes.as_slice(), &[0x90]);
    assert!(decode(&vcpu, &bytes).is_some());
}

#[test]
fn what_is_no_instruction_any_more_is_undefined() {
    let (mut vcpu, memory) = at(0x100, &[0x0f, 0xff, 0xff]);
    vcpu.segments[SegmentName::Cs as usize].rights = AccessRights::from_packed(0xa9b);
    vcpu.efer = efer::LMA;
    let junk = [0xff; 15];
    memory.write(Gpa(0x100), &junk).unwrap();
    assert_eq!(skip(&mut vcpu, &memory, CPUID), Err(Exception::InvalidOpcode));
    assert_eq!(vcpu.rip, 0x100);
}

#[test]
fn code_that_is_not_mapped_any_more_faults() {
    let (mut vcpu, memory) = at(0x100, &[0x0f, 0xa2]);
    vcpu.cr0 = cr0::PG | cr0::PE;
    vcpu.cr4 = cr4::PAE;
    vcpu.efer = efer::LMA;
    assert!(matches!(skip(&mut vcpu, &memory, CPUID), Err(Exception::PageFault { .. })));
}

#[test]
fn the_code_segment_determines_the_width_of_instructions() {
    let (mut vcpu, _) = at(0, &[]);
    assert_eq!(bitness(&vcpu), 32);
    vcpu.segments[SegmentName::Cs as usize].rights = AccessRights::from_packed(0x9b);
    assert_eq!(bitness(&vcpu), 16);
    vcpu.segments[SegmentName::Cs as usize].rights = AccessRights::from_packed(0xa9b);
    assert_eq!(bitness(&vcpu), 16, "without long mode there is no 64-bit code");
    vcpu.efer = efer::LMA;
    assert_eq!(bitness(&vcpu), 64);
}

proptest! {
    #[test]
    fn any_bytes_are_skipped_or_refused(code in prop::collection::vec(any::<u8>(), 0..20), rip in 0u64..0x1ff0, attributes in any::<u16>()) {
        let (mut vcpu, memory) = at(rip, &code[..code.len().min((0x2000 - rip) as usize)]);
        vcpu.segments[SegmentName::Cs as usize].rights = AccessRights::from_packed(attributes);
        if skip(&mut vcpu, &memory, CPUID).is_ok() {
            prop_assert!(vcpu.rip > rip && vcpu.rip <= rip + 15);
        }
    }
}
