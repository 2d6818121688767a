// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests, their memory and their blocks: what cannot be is refused, with its reason.

use super::samples::Sample;
use crate::RecordError;
use crate::layout::Kind;
use crate::layout::guests::{GuestState, MemoryUse, guest_flag};
use crate::record::Record;
use crate::state::BlockKind;

fn reason(spoil: impl FnOnce(&mut Sample)) -> (Kind, &'static str) {
    let mut sample = Sample::new();
    spoil(&mut sample);
    match Record::open(&sample.record()).expect_err("refused") {
        RecordError::BadGuest { kind, reason, .. } => (kind, reason),
        other => panic!("{other}"),
    }
}

#[test]
fn a_guests_memory_and_blocks_are_found() {
    let bytes = Sample::new().record();
    let record = Record::open(&bytes).expect("good");
    let memory = |purpose| record.memory_of(0, purpose).map(|memory| memory.start.get()).next();
    assert_eq!((memory(MemoryUse::Memory), memory(MemoryUse::NestedTables)), (Some(0x100_0000), Some(0x200_0000)));
    assert_eq!(record.memory_of(1, MemoryUse::Memory).count(), 0);
    let block = |kind, vcpu| record.block_of(kind, 0, vcpu).map(|block| block.start.get());
    assert_eq!((block(BlockKind::Vcpu, 1), block(BlockKind::Vcpu, 2)), (Some(0x83_4000), None));
}

#[test]
fn guests_that_cannot_be_are_refused() {
    let refused = |spoil: fn(&mut Sample)| {
        let (kind, reason) = reason(spoil);
        assert_eq!(kind, Kind::Guests);
        reason
    };
    assert_eq!(refused(|s| s.guests.swap(0, 1)), "the guests are not in the order of their numbers");
    assert_eq!(refused(|s| s.guests[0].name[0] = 0), "it has no name");
    assert_eq!(refused(|s| s.guests[1].vcpus = 0.into()), "it has no vCPUs, or too many");
    assert_eq!(refused(|s| s.guests[1].state = 77.into()), "its state is unknown");
    assert_eq!(refused(|s| s.guests[1].state_before_pause = 77.into()), "its state before its pause is unknown");
    assert_eq!(refused(|s| s.guests[1].flags = 16.into()), "a flag is unknown");
    assert_eq!(refused(|s| s.guests[0].state = (GuestState::Failed as u32).into()), "it runs and has ended");
    assert_eq!(refused(|s| s.guests[0].nested_root = 0x200_2000.into()), "its tables have no root");
    assert_eq!(refused(|s| s.guests[0].nested_root = 0x200_0800.into()), "its tables have no root");
}

#[test]
fn memory_that_cannot_be_is_refused() {
    let refused = |spoil: fn(&mut Sample)| {
        let (kind, reason) = reason(spoil);
        assert_eq!(kind, Kind::GuestMemory);
        reason
    };
    assert_eq!(refused(|s| s.guest_memory[0].bytes = 17.into()), "a piece of its memory is not whole frames");
    let twice = "its memory is not by rising address, or belongs to two";
    assert_eq!(refused(|s| s.guest_memory.swap(0, 1)), twice);
    assert_eq!(refused(|s| s.guest_memory[0].bytes = 0x100_1000.into()), twice);
    let far = |s: &mut Sample| s.guest_memory[0].start = 0x9_f000.into();
    assert_eq!(refused(far), "a piece of its memory is not usable memory");
    assert_eq!(refused(|s| s.guest_memory[0].start = 0x60_0000.into()), "a piece of its memory is the host's");
    assert_eq!(refused(|s| s.modules[0].start = 0x100_0000.into()), "a piece of its memory is the host's");
    assert_eq!(refused(|s| s.guest_memory[0].purpose = 3.into()), "memory for an unknown purpose");
    let address = |s: &mut Sample| s.guest_memory[0].guest_address = (u64::MAX - 0xfff).into();
    assert_eq!(refused(address), "a guest address cannot be");
}

#[test]
fn memory_belongs_to_a_guest_that_runs() {
    for guest in [1u32, 2] {
        let spoil = |s: &mut Sample| {
            s.guest_memory.push(crate::layout::guests::GuestMemory {
                start: 0x300_0000.into(),
                guest: guest.into(),
                ..s.guest_memory[0]
            })
        };
        assert_eq!(reason(spoil), (Kind::GuestMemory, "it has memory and no run"));
    }
    assert_eq!(
        reason(|s| s.guest_memory[0].purpose = (MemoryUse::NestedTables as u32).into()),
        (Kind::Blocks, "it has no memory")
    );
    let ended = |s: &mut Sample| {
        s.guests[0].flags = (s.guests[0].flags.get() & !guest_flag::HAS_RUN).into();
        s.guests[0].state = (GuestState::Stopped as u32).into();
        s.guests[0].nested_root = 0.into();
    };
    assert_eq!(reason(ended), (Kind::GuestMemory, "it has memory and no run"));
}

#[test]
fn blocks_that_cannot_be_are_refused() {
    let refused = |spoil: fn(&mut Sample)| {
        let (kind, reason) = reason(spoil);
        assert_eq!(kind, Kind::Blocks);
        reason
    };
    assert_eq!(refused(|s| s.blocks[2].kind = (BlockKind::Console as u32).into()), "not one block for each vCPU");
    assert_eq!(refused(|s| s.blocks[0].kind = (BlockKind::Late as u32).into()), "a block is missing");
    assert_eq!(refused(|s| s.blocks[4].kind = 99.into()), "a block of an unknown kind");
    assert_eq!(refused(|s| s.blocks[4].guest = 2.into()), "a block of a guest that is not there");
    assert_eq!(refused(|s| s.blocks[2].vcpu = 2.into()), "a block of a vCPU that is not there");
    assert_eq!(refused(|s| s.blocks[5].start = 0x84_0000.into()), "a block is in memory that is not kept for blocks");
    assert_eq!(refused(|s| s.blocks[5].cpu = 2.into()), "a block is carried by no CPU");
    assert_eq!(refused(|s| s.blocks[2].vcpu = 0.into()), "a block is there twice");
    assert_eq!(refused(|s| s.blocks[5].start = 0x83_d000.into()), "two blocks are in one place");
}
