// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine's CPUs, by number, and the state of each.

use alloc::vec::Vec;

use ::update::platform::Cpu;
use bringup::{CpuCell, GROUP_CPUS, Group, State, SyncOutcome};
use handover::layout::CpuState;
use spin::Once;

use crate::arch::apic::{self, Mode as ApicMode};
use crate::arch::percpu::{BOOT_CPU, MAX_CPUS, PerCpu};
use crate::kernel::platform::firmware;

/// One for each identifier.
static CELLS: Once<Vec<CpuCell>> = Once::new();
/// One for each [`GROUP_CPUS`] CPUs.
static GROUPS: Once<Vec<Group>> = Once::new();
/// Identifiers by number; the boot CPU is number 0.
pub static APIC_IDS: Once<Vec<u32>> = Once::new();

/// A CPU of this image as the next one is informed of it.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// Its number.
    pub index: u32,
    /// Its APIC identifier.
    pub apic_id: u32,
    /// The state in which this image leaves it.
    pub state: CpuState,
}

impl Member {
    /// Its names.
    pub fn cpu(&self) -> Cpu {
        Cpu { index: self.index, apic_id: self.apic_id }
    }
}

/// All CPUs that can be used, this one first, then in the firmware's order; and how many the firmware names.
pub fn identifiers(mine: u32) -> (Vec<u32>, usize) {
    let tables = firmware();
    let others = || tables.cpus.iter().filter(|cpu| cpu.apic_id != mine);
    // In xAPIC mode an interrupt's destination has eight bits, of which one value means all.
    let is_reachable = |apic_id: &u32| apic::mode() == ApicMode::X2apic || *apic_id < 0xff;
    let enabled = || others().filter(|cpu| cpu.enabled).map(|cpu| cpu.apic_id);
    let unreachable = enabled().filter(|apic_id| !is_reachable(apic_id)).count();
    if unreachable > 0 {
        log::warn!("{unreachable} CPUs have APIC ids above 254 and are not used: that takes x2APIC mode");
    }
    let reachable = enabled().filter(is_reachable);
    let ids: Vec<u32> = core::iter::once(mine).chain(reachable).take(MAX_CPUS).collect();
    let named = others().count() + 1;
    if named > MAX_CPUS {
        log::warn!("{named} CPUs, of which this version uses {MAX_CPUS}");
    }
    (ids, named)
}

/// Stores the local APIC identifiers of all CPUs that can be used, and makes a cell for each. Call once.
pub fn set_identifiers(ids: Vec<u32>) -> &'static [u32] {
    CELLS.call_once(|| ids.iter().map(|_| CpuCell::new()).collect());
    GROUPS.call_once(|| ids.chunks(GROUP_CPUS).map(|_| Group::new()).collect());
    APIC_IDS.call_once(|| ids)
}

pub fn groups() -> &'static [Group] {
    GROUPS.get().map_or(&[], Vec::as_slice)
}

pub fn cells() -> &'static [CpuCell] {
    CELLS.get().map_or(&[], Vec::as_slice)
}

pub fn cell(index: u32) -> Option<&'static CpuCell> {
    cells().get(index as usize)
}

/// Every CPU that is online, this one (the boot CPU) first, for a restart.
pub fn members() -> Vec<Member> {
    let mine = PerCpu::current();
    let state = CpuState::HandsOver;
    let first = Member { index: mine.index, apic_id: mine.apic_id, state };
    let parked = |(index, apic_id)| Member { index, apic_id, state: CpuState::Parked };
    core::iter::once(first).chain(others().map(parked)).collect()
}

/// Sends INIT to every CPU that is not online: wherever it stands, it needs no memory of this image's from then
/// on.
pub fn init_absent() {
    let absent = (1..count()).filter(|index| state(*index) != Some(State::Online));
    absent.filter_map(apic_id).for_each(apic::send_init);
}

/// Identifiers of all CPUs that are online.
pub fn online_apic_ids() -> Vec<u32> {
    core::iter::once(apic::id()).chain(others().map(|(_, apic_id)| apic_id)).collect()
}

pub fn others() -> impl Iterator<Item = (u32, u32)> {
    let others = online().into_iter().filter(|index| *index != BOOT_CPU);
    others.filter_map(|index| Some((index, apic_id(index)?)))
}

/// Returns whether all CPUs' clocks agree, as far as is known.
pub fn clocks_agree() -> bool {
    let mut outcomes = others().filter_map(|(index, _)| cell(index).map(|cell| cell.sync().outcome));
    outcomes.all(|outcome| matches!(outcome, SyncOutcome::Skipped | SyncOutcome::Agrees | SyncOutcome::Corrected))
}

/// Returns how many CPUs can be used.
pub fn count() -> u32 {
    APIC_IDS.get().map_or(1, |ids| ids.len() as u32)
}

/// The identifier of the CPU with this number.
pub fn apic_id(index: u32) -> Option<u32> {
    APIC_IDS.get()?.get(index as usize).copied()
}

/// Returns where the CPU with this number stands.
pub fn state(index: u32) -> Option<State> {
    apic_id(index)?;
    let state = || cell(index).map(CpuCell::state);
    if index == BOOT_CPU { Some(State::Online) } else { state() }
}

/// The numbers of those online.
pub fn online() -> Vec<u32> {
    (0..count()).filter(|index| *index == BOOT_CPU || state(*index) == Some(State::Online)).collect()
}
