// SPDX-License-Identifier: MIT OR Apache-2.0
//! The hand-over state of guests: which guests there are, which memory is theirs, and blocks for what is saved at the
//! last moment.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use handover::block::{BlockMut, HEAD_BYTES, Owner};
use handover::layout::guests::{BlockPlace, Guest as GuestRecord, GuestMemory, GuestState, MemoryUse, guest_flag};
use handover::layout::{Stamps, padded};
use handover::state::{self, BlockKind, Late};
use spin::Mutex;
use units::{PAGE_BYTES, PageSize, PhysAddr, PhysRange};
use wire::VmState;
use wire::history::HISTORY_BYTES;

use crate::arch::memory::{FRAMES, OwnedFrames};
use crate::arch::percpu::BOOT_CPU;
use crate::guests::console::{INPUT_BYTES, OUTPUT_BYTES};
use crate::guests::events;
use crate::guests::guest::{GUESTS, Guest};
use crate::guests::instance::Instance;
use crate::kernel::inherited::Conversation;
use crate::kernel::ledger::retired;

/// Behind a block's first page: CPUID's leaves; the XSAVE area; version 3's PCI functions.
const POLICY_TAIL_BYTES: u64 = 2 * PAGE_BYTES;
const VCPU_TAIL_BYTES: u64 = PAGE_BYTES;
const VERSION_3_DEVICES_TAIL_BYTES: u64 = PAGE_BYTES;
const CONSOLE_TAIL_BYTES: u64 = (OUTPUT_BYTES + INPUT_BYTES) as u64;

/// The version since which a guest that is held for a reader is handed over as such.
const HELD_SINCE: u32 = 4;
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
    /// Pieces of damaged memory when this was packed, before the record was written.
    retired: usize,
}

/// Memory of its own for one thing that is saved.
pub struct Block {
    /// The new image's description of it.
    pub place: BlockPlace,
    frames: Mutex<OwnedFrames>,
}

impl Block {
    /// Its memory.
    pub fn range(&self) -> PhysRange {
        PhysRange::from_start(PhysAddr(self.place.start.get()), self.place.bytes.get()).unwrap_or_default()
    }

    /// Fills it. For the CPU that carries what is in it: nobody else waits for this lock.
    pub fn with<T>(&self, fill: impl FnOnce(&mut [u8]) -> T) -> T {
        fill(self.frames.lock().bytes_mut())
    }
}

impl HandOverState {
    /// Packs what all guests that run need, for a reader of this version. What does not change while they run is saved
    /// at once.
    ///
    /// # Errors
    /// Why a guest cannot be handed over.
    pub fn pack(version: u32) -> Result<Self, String> {
        let mut this = Self::of_the_host()?;
        for guest in GUESTS.get().map_or(&[][..], |guests| &guests.all) {
            this.pack_guest(guest, version)?;
        }
        Ok(this)
    }

    /// The hand-over state where guests start again: room for what the host knows last.
    ///
    /// # Errors
    /// There is no memory.
    pub fn of_the_host() -> Result<Self, String> {
        let mut this = Self { retired: retired::count(), ..Self::default() };
        this.add(BlockKind::Late, HOST, BOOT_CPU, BOOT_CPU, HISTORY_BYTES as u64)?;
        Ok(this)
    }

    /// Saves what the host itself knows last: the conversation, when what happened, and its events. Allocates nothing.
    ///
    /// # Errors
    /// It finds no room.
    pub fn save_host(&self, version: u32, stamps: &Stamps, conversation: &Conversation) -> Result<(), String> {
        let block = self.block(BlockKind::Late, HOST).ok_or("the host has no block")?;
        let late = Late { stamps: *stamps, control: conversation.section(events::next_sequence()) };
        block.with(|bytes| {
            let mut block = BlockMut::<Late>::begin(bytes, HOST, version).map_err(|_| "the host finds no room")?;
            let (into, tail) = block.parts().map_err(|_| "the host finds no room")?;
            *into = late;
            let used = events::save(tail);
            block.finish(used).map_err(|_| "the host finds no room".into())
        })
    }

    fn pack_guest(&mut self, guest: &Guest, version: u32) -> Result<(), String> {
        let run = guest.run::<Instance>();
        let (status, before) = guest.status_and_before_pause();
        let state = state_number(guest, status.state)?;
        self.guests.push(GuestRecord {
            name: padded(&guest.config.name),
            config_digest: guest.config.digest().into(),
            since_ns: status.since_ns.into(),
            since_before_pause_ns: before.as_ref().map_or(0, |before| before.since_ns).into(),
            nested_root: run.as_ref().map_or(0, |run| run.space_root()).into(),
            number: guest.number.into(),
            vcpus: guest.config.vcpus.into(),
            state: (state as u32).into(),
            state_before_pause: match &before {
                Some(before) => state_number(guest, before.state)? as u32,
                None => 0,
            }
            .into(),
            flags: (run.as_ref().map_or(0, |run| flags(run)) | held_flag(guest, version)).into(),
            zero: 0.into(),
            throttled_since_ns: guest.health.throttled_since_ns().unwrap_or(0).into(),
            reason: padded(status.reason.as_deref().unwrap_or_default()),
        });
        match run {
            Some(run) => self.pack_run(guest, &run, version),
            None => Ok(()),
        }
    }

    fn pack_run(&mut self, guest: &Guest, run: &Arc<Instance>, version: u32) -> Result<(), String> {
        let number = guest.number;
        if !run.machine.can_be_read_by(version) {
            let name = &guest.config.name;
            return Err(format!(
                "guest '{name}': its CPUID shows SPEC_CTRL or IBPB, which hand-over version {version} does not carry"
            ));
        }
        guest.gather_console();
        for slot in run.machine.memory().slots() {
            self.add_memory(number, slot.physical, slot.bytes, slot.gpa, MemoryUse::Memory);
        }
        self.add_memory(number, run.space_root(), PAGE_BYTES, 0, MemoryUse::NestedTables);
        for vcpu in 0..guest.config.vcpus {
            let (cpu, own) = (guest.cpu_of(vcpu as usize), guest.own_cpu(vcpu as usize));
            self.add(BlockKind::Vcpu, Owner { guest: number, vcpu }, cpu, own, VCPU_TAIL_BYTES)?;
        }
        let home = guest.home();
        let owner = Owner { guest: number, vcpu: 0 };
        let devices = VERSION_3_DEVICES_TAIL_BYTES.max(run.machine.devices_tail_bytes() as u64);
        self.add(BlockKind::Devices, owner, home, home, devices)?;
        self.add(BlockKind::Console, owner, home, home, CONSOLE_TAIL_BYTES)?;
        let policy = self.add(BlockKind::Policy, owner, home, home, POLICY_TAIL_BYTES)?;
        let too_large = || format!("what guest '{}' was told when it booted is too much", guest.config.name);
        policy.with(|bytes| {
            let mut block =
                BlockMut::<state::Policy>::begin(bytes, owner, version).map_err(|error| error.to_string())?;
            let (policy, tail) = block.parts().map_err(|error| error.to_string())?;
            let used = run.machine.save_policy(policy, tail).map_err(|_| too_large())?;
            block.finish(used).map_err(|error| error.to_string())
        })
    }

    fn add_memory(&mut self, guest: u32, start: u64, bytes: u64, guest_address: u64, purpose: MemoryUse) {
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

    fn add(&mut self, kind: BlockKind, owner: Owner, cpu: u32, own: u32, tail: u64) -> Result<&Block, String> {
        let bytes = (HEAD_BYTES as u64 + tail).next_multiple_of(PAGE_BYTES);
        let frames =
            FRAMES.lock().allocate(bytes, PageSize::Kib4).map_err(|error| format!("the guests' state: {error}"))?;
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
        self.blocks.push(Block { place, frames: Mutex::new(frames) });
        self.blocks.last().ok_or_else(String::new)
    }

    /// Nothing of what was saved in them counts any more, but for what does not change.
    pub fn forget_drafts(&self) {
        let is_draft = |block: &&Block| block.place.kind.get() != BlockKind::Policy as u32;
        self.blocks.iter().filter(is_draft).for_each(|block| block.with(|bytes| bytes[..HEAD_BYTES].fill(0)));
    }

    /// Returns where this is saved.
    pub fn block(&self, kind: BlockKind, owner: Owner) -> Option<&Block> {
        let wanted = (kind as u32, owner.guest, owner.vcpu);
        self.blocks
            .iter()
            .find(|block| (block.place.kind.get(), block.place.guest.get(), block.place.vcpu.get()) == wanted)
    }

    /// Returns whether all vCPUs have been saved. One whose guest ended, or has been reset, since this was packed
    /// has not.
    pub fn has_all_vcpus(&self) -> bool {
        let mut vcpus = self.blocks.iter().filter(|block| block.place.kind.get() == BlockKind::Vcpu as u32);
        vcpus.all(|block| block.with(|bytes| handover::block::identify(bytes).is_some()))
    }

    /// Returns whether every guest still is what it was when this was packed, and no memory has been found damaged
    /// since.
    pub fn is_current(&self) -> bool {
        let guests = GUESTS.get().map_or(&[][..], |guests| &guests.all);
        let is_same_memory = self.retired == retired::count();
        is_same_memory
            && self.guests.iter().zip(guests).all(|(packed, guest)| {
                let (status, _) = guest.status_and_before_pause();
                let run = guest.run::<Instance>();
                let state = state_number(guest, status.state).map(|state| state as u32).ok();
                let is_ending = run.as_ref().is_some_and(|run| run.is_ending());
                state == Some(packed.state.get())
                    && run.as_ref().map_or(0, |run| run.space_root()) == packed.nested_root.get()
                    && run.as_ref().map_or(0, |run| flags(run)) == packed.flags.get() & !guest_flag::IS_HELD
                    && !is_ending
                    && !guest.has_orders()
            })
    }
}

fn flags(run: &Instance) -> u32 {
    guest_flag::HAS_RUN | if run.is_paused() { guest_flag::STANDS_STILL } else { 0 }
}

/// A reader that does not know the flag keeps the guest paused, as the operator's pause.
fn held_flag(guest: &Guest, version: u32) -> u32 {
    let is_held = version >= HELD_SINCE && guest.lease().is_running();
    if is_held { guest_flag::IS_HELD } else { 0 }
}

fn state_number(guest: &Guest, state: VmState) -> Result<GuestState, String> {
    Ok(match state {
        VmState::Running => GuestState::Running,
        VmState::Paused => GuestState::Paused,
        VmState::Stopped => GuestState::Stopped,
        VmState::Failed => GuestState::Failed,
        VmState::Panicked => GuestState::Panicked,
        VmState::Hung => GuestState::Hung,
        other => return Err(format!("guest '{}' is {other}", guest.config.name)),
    })
}
