// SPDX-License-Identifier: MIT OR Apache-2.0
//! Adoption: an image on trial makes guests ready that the old image runs. The conditions that each guest meets before
//! anything of it is built, and the CPU that restores each vCPU and device.
//!
//! ```text
//! for each guest   same in the bundle ─▶ status ─ has it run? ─▶ plan ─▶ build ─▶ paused, held ─▶ slots of its CPUs
//! ```
//!
//! All of it happens while guests run in the old image, and changes nothing of theirs: a guest that cannot be made
//! ready ends the trial, no guest. What is restored from the slots, and when, is in [`crate::slots`].

use alloc::vec::Vec;
use core::fmt;

use handover::layout::guests::{BlockPlace, Guest, MemoryUse, guest_flag};
use handover::layout::unpadded;
use handover::record::Record;
use handover::state::BlockKind;
use units::{PhysAddr, PhysRange};

use crate::slots::Slot;

/// A guest as the new image's bundle describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known<'a> {
    /// Its name.
    pub name: &'a str,
    /// The digest of its configuration.
    pub digest: u64,
}

/// The reason why a guest cannot be handed over, as far as the hand-over block shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// The bundle has another number of guests.
    OtherGuests,
    /// The bundle describes it otherwise.
    OtherConfig,
    /// Its policy is missing.
    NoPolicy,
    /// The state of a vCPU is missing.
    NoVcpu,
    /// The state of its devices is missing.
    NoDevices,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OtherGuests => "the bundle has another number of guests than the old image",
            Self::OtherConfig => "its entry in the bundle differs from the one that it was started from",
            Self::NoPolicy => "it has no policy",
            Self::NoVcpu => "a vCPU has no state",
            Self::NoDevices => "its devices have no state",
        })
    }
}

/// All that a guest is built from.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Its memory, by rising guest-physical address.
    pub memory: Vec<(PhysRange, u64)>,
    /// The block with what it was shown of the CPU.
    pub policy: BlockPlace,
    /// The block of each vCPU, by its number.
    pub vcpus: Vec<BlockPlace>,
    /// The block of its devices.
    pub devices: BlockPlace,
}

impl Plan {
    /// Returns the plan of this guest.
    ///
    /// # Errors
    /// A block that is missing.
    pub fn of(record: &Record<'_>, guest: &Guest) -> Result<Self, Mismatch> {
        let number = guest.number.get();
        let vcpu = |vcpu| record.block_of(BlockKind::Vcpu, number, vcpu).ok_or(Mismatch::NoVcpu);
        Ok(Self {
            memory: memory(record, number),
            policy: record.block_of(BlockKind::Policy, number, 0).ok_or(Mismatch::NoPolicy)?,
            vcpus: (0..guest.vcpus.get()).map(vcpu).collect::<Result<_, _>>()?,
            devices: record.block_of(BlockKind::Devices, number, 0).ok_or(Mismatch::NoDevices)?,
        })
    }
}

fn memory(record: &Record<'_>, guest: u32) -> Vec<(PhysRange, u64)> {
    let pieces = record.memory_of(guest, MemoryUse::Memory).filter_map(|piece| {
        Some((PhysRange::from_start(PhysAddr(piece.start.get()), piece.bytes.get())?, piece.guest_address.get()))
    });
    let mut memory: Vec<(PhysRange, u64)> = pieces.collect();
    sort::by_key(&mut memory, |(_, guest_address)| *guest_address);
    memory
}

/// A run of a guest and its vCPUs, as a [`Builder`] has built them.
pub type Built<B> = (<B as Builder>::Run, Vec<<B as Builder>::Vcpu>);

/// The new image, as guests are built in it. Guests are known by their places in the bundle.
pub trait Builder: Sized {
    /// A run of a guest.
    type Run: Clone;
    /// A vCPU.
    type Vcpu;
    /// The error of a build.
    type Error: From<Mismatch>;

    /// Returns the number of guests in the bundle.
    fn guests(&self) -> usize;
    /// Returns a guest of the bundle.
    fn known(&self, guest: usize) -> Known<'_>;
    /// Takes the guest's state and its reason from the hand-over block.
    fn set_status(&mut self, guest: usize, from: &Guest);
    /// Builds its run, with nothing of what guests change while they run.
    ///
    /// # Errors
    /// The part that cannot be built.
    fn build(&mut self, guest: usize, plan: &Plan) -> Result<Built<Self>, Self::Error>;
    /// Returns the number of a vCPU in its guest.
    fn number_of(&self, vcpu: &Self::Vcpu) -> u32;
    /// Pauses its vCPUs.
    fn pause(&mut self, guest: usize, run: &Self::Run);
    /// Pauses them for a client that reads the guest; they resume once no client does.
    fn hold(&mut self, guest: usize);
    /// Sets the guest's run.
    fn set_run(&mut self, guest: usize, run: &Self::Run);
    /// Assigns the slot to the CPU of this number, which restores it.
    fn assign(&mut self, cpu: u32, slot: Slot<Self::Vcpu, Self::Run>);
}

/// A guest that cannot be handed over.
#[derive(Debug, PartialEq, Eq)]
pub struct Refused<E> {
    /// Its place in the bundle; `None`: the bundle has other guests.
    pub guest: Option<usize>,
    /// The reason.
    pub problem: E,
}

/// Makes all guests ready that are handed over.
///
/// # Errors
/// The first guest that cannot be, and why.
pub fn adopt_guests<B: Builder>(record: &Record<'_>, builder: &mut B) -> Result<(), Refused<B::Error>> {
    if record.guests.len() != builder.guests() {
        return Err(Refused { guest: None, problem: Mismatch::OtherGuests.into() });
    }
    record.guests.iter().enumerate().try_for_each(|(guest, from)| {
        adopt(record, guest, &from, builder).map_err(|problem| Refused { guest: Some(guest), problem })
    })
}

fn adopt<B: Builder>(record: &Record<'_>, guest: usize, from: &Guest, builder: &mut B) -> Result<(), B::Error> {
    let known = builder.known(guest);
    if unpadded(&from.name) != known.name || from.config_digest.get() != known.digest {
        return Err(Mismatch::OtherConfig.into());
    }
    builder.set_status(guest, from);
    let has = |flag| from.flags.get() & flag != 0;
    if !has(guest_flag::HAS_RUN) {
        return Ok(());
    }
    let plan = Plan::of(record, from)?;
    let (run, vcpus) = builder.build(guest, &plan)?;
    if has(guest_flag::STANDS_STILL) {
        builder.pause(guest, &run);
    }
    if has(guest_flag::IS_HELD) {
        builder.hold(guest);
    }
    builder.set_run(guest, &run);
    for vcpu in vcpus {
        let place = *plan.vcpus.get(builder.number_of(&vcpu) as usize).ok_or(Mismatch::NoVcpu)?;
        builder.assign(place.cpu.get(), Slot::Vcpu(Some(vcpu), place));
    }
    builder.assign(plan.devices.cpu.get(), Slot::Devices(run, plan.devices));
    Ok(())
}
