// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;
use crate::addr::Gpa;
use crate::machine::instruction;
use crate::memory::GuestMemory;
use crate::testing::{FakeMemory, FakeVcpu};
use crate::vcpu::{AccessRights, Segment, SegmentName, efer};

fn fetched(code: &[u8]) -> Bytes {
    let memory = FakeMemory::new(0x1000);
    memory.write(Gpa(0x100), code).unwrap();
    let mut vcpu = FakeVcpu { rip: 0x100, efer: efer::LMA, ..FakeVcpu::default() };
    vcpu.segments[SegmentName::Cs as usize] =
        Segment { rights: AccessRights::from_packed(0xa9b), ..Segment::default() };
    instruction::fetch(&vcpu, &memory).unwrap()
}

#[test]
fn outside_64_bit_mode_a_prefix_is_one_only_where_it_names_no_memory() {
    let lds = fetched(&[0xc5, 0x03]); // lds eax, [ebx]
    assert_eq!(decode(&lds, 32, 0x100), Ok(None));
    assert!(decode(&lds, 64, 0x100).is_err());
    let vmovdqu = fetched(&[0xc5, 0xfe, 0x6f, 0x03]);
    for bitness in [16, 32, 64] {
        let access = decode(&vmovdqu, bitness, 0x100).unwrap().unwrap();
        assert_eq!((access.instruction.ip(), access.instruction.next_ip()), (0x100, 0x104));
    }
}

#[test]
fn any_prefix_is_a_move_or_refused_and_ends_where_its_bytes_end() {
    for (first, second) in (0..=0xff).flat_map(|first| (0..=0xff).map(move |second| (first, second))) {
        for code in [[0x67, 0xc5, first, second, 0x03, 0, 0], [0xc4, first, second, 0x6f, 0x03, 0, 0]] {
            if let Ok(Some(access)) = decode(&fetched(&code), 64, 0x100) {
                assert_eq!(access.instruction.next_ip(), 0x105, "{code:x?}");
                assert!(access.instruction.op0_register().is_xmm() || access.instruction.op1_register().is_xmm());
            }
        }
    }
}
