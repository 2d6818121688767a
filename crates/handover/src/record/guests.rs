// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks of a record's guests: against each other, and against the machine's memory.

use units::{PhysAddr, PhysRange};

use super::{Record, range};
use crate::RecordError;
use crate::layout::guests::{BlockPlace, Guest, GuestMemory, GuestState, MemoryUse, guest_flag};
use crate::layout::{Kind, Purpose};
use crate::state::BlockKind;

/// ACPI's number for memory that can be used.
const USABLE: u32 = 1;
/// The most vCPUs that a guest has.
const MOST_VCPUS: u32 = 4096;

impl<'a> Record<'a> {
    /// The guest's memory for a use, by rising physical address.
    pub fn memory_of(&self, guest: u32, purpose: MemoryUse) -> impl Iterator<Item = GuestMemory> + use<'a> {
        self.guest_memory.iter().filter(move |memory| is_of(memory, guest, purpose))
    }

    /// Returns where a block of a guest is, or of one of its vCPUs.
    pub fn block_of(&self, kind: BlockKind, guest: u32, vcpu: u32) -> Option<BlockPlace> {
        let numbers = |block: &BlockPlace| (block.kind.get(), block.guest.get(), block.vcpu.get());
        self.blocks.iter().find(|block| numbers(block) == (kind as u32, guest, vcpu))
    }

    /// Checks the guests, their memory and the blocks.
    pub(super) fn check_guests(&self) -> Result<(), RecordError> {
        (0..).zip(self.guests.iter()).try_for_each(|(number, guest)| self.check_guest(number, &guest))?;
        self.check_memory()?;
        self.guests.iter().try_for_each(|guest| self.check_blocks_of(&guest))?;
        let all = || self.blocks.iter();
        (0..).zip(all()).try_for_each(|(index, block)| {
            let before = || all().take(index);
            self.check_block(&block, before)
        })
    }

    fn check_guest(&self, number: u32, guest: &Guest) -> Result<(), RecordError> {
        let state = GuestState::from_number(guest.state.get());
        let before = guest.state_before_pause.get();
        let has_run = guest.flags.get() & guest_flag::HAS_RUN != 0;
        let root = guest.nested_root.get();
        let tables = || self.memory_of(number, MemoryUse::NestedTables);
        let is_root_there = || tables().any(|table| root.wrapping_sub(table.start.get()) < table.bytes.get());
        let over = matches!(state, Some(GuestState::Stopped | GuestState::Failed));
        let checks = [
            (guest.number.get() == number, "the guests are not in the order of their numbers"),
            (guest.name[0] != 0, "it has no name"),
            ((1..=MOST_VCPUS).contains(&guest.vcpus.get()), "it has no vCPUs, or too many"),
            (state.is_some(), "its state is unknown"),
            (before == 0 || GuestState::from_number(before).is_some(), "its state before its pause is unknown"),
            (guest.flags.get() & !guest_flag::ALL == 0, "a flag is unknown"),
            (has_run != over, "it runs and has ended"),
            (if has_run { root.is_multiple_of(4096) && is_root_there() } else { root == 0 }, "its tables have no root"),
        ];
        refuse_first(Kind::Guests, number, &checks)
    }

    /// A guest that runs has a block for each of its vCPUs and one for each other thing.
    fn check_blocks_of(&self, guest: &Guest) -> Result<(), RecordError> {
        let number = guest.number.get();
        if guest.flags.get() & guest_flag::HAS_RUN == 0 {
            return Ok(());
        }
        let count = |kind: BlockKind| {
            let is_its = |block: &BlockPlace| (block.kind.get(), block.guest.get()) == (kind as u32, number);
            self.blocks.iter().filter(is_its).count()
        };
        let is_on_demand = count(BlockKind::OnDemand) == 1;
        let checks = [
            (count(BlockKind::Vcpu) == guest.vcpus.get() as usize, "not one block for each vCPU"),
            (count(BlockKind::Policy) == 1 && count(BlockKind::Devices) == 1, "a block is missing"),
            (self.memory_of(number, MemoryUse::Memory).next().is_some() || is_on_demand, "it has no memory"),
        ];
        refuse_first(Kind::Blocks, number, &checks)
    }

    /// Checks that pieces rise without overlapping, lie in usable memory, and belong to no other owner.
    fn check_memory(&self) -> Result<(), RecordError> {
        let mut end = PhysAddr(0);
        for memory in self.guest_memory.iter() {
            let piece = range(memory.start.get(), memory.bytes.get()).unwrap_or_default();
            let guest = self.guests.get(memory.guest.get() as usize);
            let is_whole = memory.guest_address.get().checked_add(memory.bytes.get()).is_some();
            let checks = [
                (!piece.is_empty(), "a piece of its memory is not whole frames"),
                (piece.start() >= end, "its memory is not by rising address, or belongs to two"),
                (self.is_usable(piece), "a piece of its memory is not usable memory"),
                (!self.is_kept(piece), "a piece of its memory is the host's"),
                (MemoryUse::from_number(memory.purpose.get()).is_some(), "memory for an unknown purpose"),
                (guest.is_some_and(|guest| guest.flags.get() & guest_flag::HAS_RUN != 0), "it has memory and no run"),
                (is_whole && memory.guest_address.get().is_multiple_of(4096), "a guest address cannot be"),
            ];
            refuse_first(Kind::GuestMemory, memory.guest.get(), &checks)?;
            end = piece.end();
        }
        Ok(())
    }

    fn is_usable(&self, piece: PhysRange) -> bool {
        let usable = self.memory_map.iter().filter(|region| region.kind.get() == USABLE);
        let mut ranges =
            usable.filter_map(|region| PhysRange::from_start(PhysAddr(region.start.get()), region.bytes.get()));
        ranges.any(|usable| usable.start() <= piece.start() && piece.end() <= usable.end())
    }

    fn is_kept(&self, piece: PhysRange) -> bool {
        let kept = self.kept.iter().filter_map(|kept| range(kept.start.get(), kept.bytes.get()));
        let modules = self.modules.iter();
        let modules = modules.filter_map(|at| PhysRange::from_start(PhysAddr(at.start.get()), at.bytes.get()));
        kept.chain(modules).any(|other| other.start() < piece.end() && piece.start() < other.end())
    }

    fn check_block<Before: Iterator<Item = BlockPlace>>(
        &self,
        block: &BlockPlace,
        before: impl Fn() -> Before,
    ) -> Result<(), RecordError> {
        let (kind, guest, vcpu) = (BlockKind::from_number(block.kind.get()), block.guest.get(), block.vcpu.get());
        let is_host = matches!(kind, Some(BlockKind::Late | BlockKind::ControlStreams | BlockKind::DiskStreams));
        let of = self.guests.get(guest as usize);
        let vcpus = if kind == Some(BlockKind::Vcpu) { of.map_or(0, |guest| guest.vcpus.get()) } else { 1 };
        let same = |other: &BlockPlace| (other.kind, other.guest, other.vcpu) == (block.kind, block.guest, block.vcpu);
        let (start, bytes) = (block.start.get(), block.bytes.get());
        let overlaps = |other: &BlockPlace| {
            start < other.start.get().saturating_add(other.bytes.get())
                && other.start.get() < start.saturating_add(bytes)
        };
        let numbers = || self.cpus.iter().map(|cpu| cpu.number.get());
        let checks = [
            (kind.is_some_and(|kind| kind != BlockKind::Saved), "a block of an unknown kind"),
            (if is_host { guest == 0 } else { of.is_some() }, "a block of a guest that is not there"),
            (vcpu < vcpus, "a block of a vCPU that is not there"),
            (self.is_inside_kept(start, bytes), "a block is in memory that is not kept for blocks"),
            (numbers().any(|number| number == block.cpu.get()), "a block is carried by no CPU"),
            (!before().any(|other| same(&other)), "a block is there twice"),
            (!before().any(|other| overlaps(&other)), "two blocks are in one place"),
        ];
        refuse_first(Kind::Blocks, guest, &checks)
    }

    fn is_inside_kept(&self, start: u64, bytes: u64) -> bool {
        let block = range(start, bytes);
        let is_around = |kept: PhysRange| block.is_some_and(|at| kept.start() <= at.start() && at.end() <= kept.end());
        self.kept_for(Purpose::Blocks).any(is_around)
    }
}

fn is_of(memory: &GuestMemory, guest: u32, purpose: MemoryUse) -> bool {
    (memory.guest.get(), memory.purpose.get()) == (guest, purpose as u32)
}

fn refuse_first(kind: Kind, guest: u32, checks: &[(bool, &'static str)]) -> Result<(), RecordError> {
    match checks.iter().find(|(holds, _)| !holds) {
        Some((_, reason)) => Err(RecordError::BadGuest { kind, guest, reason }),
        None => Ok(()),
    }
}
