// SPDX-License-Identifier: MIT OR Apache-2.0
use std::vec;

use proptest::prelude::*;

use crate::addr::Gpa;
use crate::machine::emulate::{Recent, decode};
use crate::memory::GuestMemory;
use crate::testing::{FakeMemory, FakeVcpu};
use crate::vcpu::{AccessRights, Segment, SegmentName, efer};

const LONG: u16 = 0xa9b;
const LEGACY_32: u16 = 0xc9b;

fn at(rip: u64, attributes: u16) -> FakeVcpu {
    let mut vcpu = FakeVcpu { rip, efer: efer::LMA, ..FakeVcpu::default() };
    vcpu.segments[SegmentName::Cs as usize] =
        Segment { rights: AccessRights::from_packed(attributes), limit: u32::MAX, ..Segment::default() };
    vcpu
}

#[test]
fn code_that_has_changed_is_decoded_again() {
    let (vcpu, memory) = (at(0x100, LONG), FakeMemory::new(0x2000));
    let mut recent = Recent::default();
    memory.write(Gpa(0x100), &[0x8b, 0x03]).unwrap(); // mov eax, [rbx]
    let load = decode(&vcpu, &memory, &mut recent).unwrap();
    memory.write(Gpa(0x100), &[0x89, 0x03]).unwrap(); // mov [rbx], eax
    assert_ne!(decode(&vcpu, &memory, &mut recent).unwrap(), load);
}

#[test]
fn the_same_bytes_elsewhere_end_elsewhere() {
    let memory = FakeMemory::new(0x2000);
    let mut recent = Recent::default();
    for rip in [0x100, 0x200] {
        memory.write(Gpa(rip), &[0x89, 0x03]).unwrap();
        assert_eq!(decode(&at(rip, LONG), &memory, &mut recent).unwrap().instruction.next_ip(), rip + 2);
    }
}

proptest! {
    /// For every instruction decoded before: any bytes in any mode are what they are to a CPU that remembers nothing.
    #[test]
    fn memory_of_others_changes_nothing(
        codes in prop::collection::vec((prop::sample::select(vec![
            vec![0x8b_u8, 0x03], vec![0x89, 0x03], vec![0x48, 0x89, 0x03], vec![0xc7, 0x03, 1, 2, 3, 4], vec![0x66, 0x8b, 0x03],
            vec![0xc7, 0x03, 1, 2, 3, 5], vec![0x0f, 0xb6, 0x03], vec![0x0f, 0x0b], vec![0x41, 0x8b, 0x03],
        ]), any::<bool>(), 0x100_u64..0x1f0), 1..40),
    ) {
        let memory = FakeMemory::new(0x2000);
        let mut recent = Recent::default();
        for (code, is_long, rip) in codes {
            memory.write(Gpa(rip), &code).unwrap();
            let vcpu = at(rip, if is_long { LONG } else { LEGACY_32 });
            let fresh = decode(&vcpu, &memory, &mut Recent::default());
            prop_assert_eq!(decode(&vcpu, &memory, &mut recent), fresh);
        }
    }
}
