// SPDX-License-Identifier: MIT OR Apache-2.0
//! The hand-over state of guests: which guests there are, which memory is theirs, and blocks for what is saved at the
//! last moment.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use handover::block::{BlockError, BlockMut, HEAD_BYTES, Owner};
use handover::layout::guests::{BlockPlace, Guest as GuestRecord, GuestMemory, MemoryUse};
use handover::layout::{Assignment, PortCounters, Stamps, unpadded};
use handover::state::{BlockKind, ControlStream, ControlStreams, DiskStream, DiskStreams, Late};
use units::{PAGE_BYTES, PageSize};
use wire::history::HISTORY_BYTES;
use zerocopy::IntoBytes as _;

use super::block::Block;
use super::guest_state;
use super::held::Held;
use crate::arch::memory::{FRAMES, OwnedFrames};
use crate::arch::percpu::BOOT_CPU;
use crate::guests::events;
use crate::guests::pci::assignments;
use crate::guests::slots::GUESTS;
use crate::guests::sockets::{services, succession};
use crate::kernel::inherited::ChannelState;
use crate::kernel::ledger::retired;

/// The owner of the host's own block.
const HOST: Owner = Owner { guest: 0, vcpu: 0 };

/// All guests' share of a hand-over.
#[derive(Default)]
pub struct HandOverState {
    /// Each guest of the bundle.
    pub guests: Vec<GuestRecord>,
    /// Memory of those that run, by rising address.
    pub memory: Vec<GuestMemory>,
    /// The blocks.
    pub blocks: Vec<Block>,
    /// The operator's changes of PCI assignments.
    pub assignments: Vec<Assignment>,
    /// Counts of the networks' ports; none where guests start again.
    pub ports: Vec<PortCounters>,
    /// Pieces of damaged memory when this was packed, before the record was written.
    retired: usize,
    /// Memory on demand, which does not change meanwhile.
    pub(super) held: Vec<Held>,
}

impl HandOverState {
    /// The hand-over state where guests start again: room for what the host knows last.
    ///
    /// # Errors
    /// There is no memory.
    pub fn of_the_host() -> Result<Self, String> {
        let mut this = Self { retired: retired::count(), assignments: assignments::section(), ..Self::default() };
        this.add(BlockKind::Late, HOST, BOOT_CPU, BOOT_CPU, HISTORY_BYTES as u64)?;
        Ok(this)
    }

    /// Adds room for the streams of clients in guests and of disks, where there may be any.
    ///
    /// # Errors
    /// There is no memory.
    pub(super) fn add_streams(&mut self) -> Result<(), String> {
        let clients = services::lines().len() * size_of::<ControlStream>();
        let disks = succession::count() * size_of::<DiskStream>();
        for (kind, bytes) in [(BlockKind::ControlStreams, clients), (BlockKind::DiskStreams, disks)] {
            if bytes > 0 {
                self.add(kind, HOST, BOOT_CPU, BOOT_CPU, bytes as u64)?;
            }
        }
        Ok(())
    }

    /// Saves the host's own last state: the control channel's state, the time stamps, and its events. Allocates
    /// nothing.
    ///
    /// # Errors
    /// It finds no room.
    pub fn save_host(&self, version: u32, stamps: &Stamps, channel_state: &ChannelState) -> Result<(), String> {
        let block = self.block(BlockKind::Late, HOST).ok_or("the host has no block")?;
        let late = Late { stamps: *stamps, control: channel_state.section(events::next_sequence()) };
        block.with(|bytes| {
            let mut block = BlockMut::<Late>::begin(bytes, HOST, version)
                .map_err(|_| "the state of the host does not fit into its block")?;
            let (into, tail) = block.parts().map_err(|_| "the state of the host does not fit into its block")?;
            *into = late;
            let used = events::save(tail);
            block.finish(used).map_err(|_| "the state of the host does not fit into its block".into())
        })
    }

    /// Saves the streams of clients in guests. Allocates nothing.
    ///
    /// # Errors
    /// They find no room.
    pub fn save_streams(&self, version: u32, streams: &[ControlStream]) -> Result<(), String> {
        let Some(block) = self.block(BlockKind::ControlStreams, HOST) else { return Ok(()) };
        block.with(|bytes| {
            let text = |error: BlockError| format!("the streams of guests: {error}");
            let mut block = BlockMut::<ControlStreams>::begin(bytes, HOST, version).map_err(text)?;
            let (head, tail) = block.parts().map_err(text)?;
            head.count = (streams.len() as u32).into();
            let places = tail.chunks_exact_mut(size_of::<ControlStream>());
            places.zip(streams).for_each(|(place, stream)| place.copy_from_slice(stream.as_bytes()));
            block.finish(size_of_val(streams)).map_err(text)
        })
    }

    /// Saves the streams of disks. Allocates nothing.
    ///
    /// # Errors
    /// They find no room.
    pub fn save_disk_streams(&self, version: u32) -> Result<(), String> {
        let Some(block) = self.block(BlockKind::DiskStreams, HOST) else { return Ok(()) };
        block.with(|bytes| {
            let text = |error: BlockError| format!("the streams of disks: {error}");
            let mut block = BlockMut::<DiskStreams>::begin(bytes, HOST, version).map_err(text)?;
            let (head, tail) = block.parts().map_err(text)?;
            let count = succession::save(tail);
            head.count = (count as u32).into();
            block.finish(count * size_of::<DiskStream>()).map_err(text)
        })
    }

    /// Adds memory of a guest, by rising address.
    pub(super) fn add_memory(&mut self, guest: u32, start: u64, bytes: u64, guest_address: u64, purpose: MemoryUse) {
        let at = self.memory.partition_point(|other| other.start.get() < start);
        self.memory.insert(
            at,
            GuestMemory {
                start: start.into(),
                bytes: bytes.into(),
                guest_address: guest_address.into(),
                guest: guest.into(),
                purpose: (purpose as u32).into(),
            },
        );
    }

    /// Sets memory aside for a block.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn add(
        &mut self,
        kind: BlockKind,
        owner: Owner,
        cpu: u32,
        own: u32,
        tail: u64,
    ) -> Result<&Block, String> {
        let bytes = (HEAD_BYTES as u64 + tail).next_multiple_of(PAGE_BYTES);
        let frames = FRAMES.lock().allocate(bytes, PageSize::Kib4);
        // Not while the ledger is locked: the reason is allocated.
        let frames = frames.map_err(|error| format!("the guests' state: {error}"))?;
        let mut frames = OwnedFrames::new(frames);
        frames.bytes_mut().fill(0);
        let place = BlockPlace {
            start: frames.range().start().0.into(),
            bytes: bytes.into(),
            kind: (kind as u32).into(),
            guest: owner.guest.into(),
            vcpu: owner.vcpu.into(),
            cpu: cpu.into(),
            own_cpu: own.into(),
            zero: 0.into(),
        };
        self.blocks.push(Block::new(place, frames));
        self.blocks.last().ok_or_else(String::new)
    }

    /// Clears the drafts in the blocks, but for the blocks that do not change.
    pub fn clear_drafts(&self) {
        let kept = [BlockKind::Policy, BlockKind::Functions, BlockKind::OnDemand].map(|kind| kind as u32);
        let is_draft = |block: &&Block| !kept.contains(&block.place.kind.get());
        self.blocks.iter().filter(is_draft).for_each(|block| block.with(|bytes| bytes[..HEAD_BYTES].fill(0)));
    }

    /// Returns where this is saved.
    pub fn block(&self, kind: BlockKind, owner: Owner) -> Option<&Block> {
        let wanted = (kind as u32, owner.guest, owner.vcpu);
        self.blocks
            .iter()
            .find(|block| (block.place.kind.get(), block.place.guest.get(), block.place.vcpu.get()) == wanted)
    }

    /// Returns why the state is outdated if a vCPU has not been saved: its guest has ended, or has been reset, since
    /// this was packed.
    pub fn lacking_vcpu(&self) -> Option<String> {
        let mut vcpus = self.blocks.iter().filter(|block| block.place.kind.get() == BlockKind::Vcpu as u32);
        let block = vcpus.find(|block| block.with(|bytes| handover::block::identify(bytes).is_none()))?;
        let (owner, vcpu) = (block.place.guest.get(), block.place.vcpu.get());
        let guest = self.guests.iter().find(|guest| guest.number.get() == owner);
        let name = guest.map_or("", |guest| unpadded(&guest.name));
        Some(format!("guest '{name}' ended or was reset: its vCPU {vcpu} is gone"))
    }

    /// Returns what has changed since this was packed: a guest, or memory that has been found damaged.
    pub fn change(&self) -> Option<String> {
        if self.retired != retired::count() {
            return Some("memory was found damaged".into());
        }
        self.guests.iter().zip(GUESTS.all()).find_map(|(packed, guest)| {
            let change = guest_state::now(&guest).change_since(packed)?;
            Some(format!("guest '{}' {change}", guest.config.name))
        })
    }
}
