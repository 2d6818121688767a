// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests' state saved once while guests go on: the new image rehearses with it before any of them stops. State that it
//! cannot restore is thus known while nothing has happened; and the code that saves and restores has been run when it
//! counts.

use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

use ::update::drafts;
use ::update::platform::Cpu;
use spin::{Mutex, RwLock};

use super::blackout::HostBlackout;
use super::blocks::Blocks;
use super::machine::Machine;
use crate::arch::percpu::BOOT_CPU;

/// The order to save that CPUs are to carry out now, if there is one.
static WANTED: RwLock<Option<Wanted>> = RwLock::new(None);
static IS_WANTED: AtomicBool = AtomicBool::new(false);
/// The boot CPU, which orders them.
const LEADER: Machine<'static> = Machine::new(BOOT_CPU, None);

struct Wanted {
    /// Each CPU, and the way that it takes.
    members: Vec<(u32, HostBlackout)>,
    outcomes: Mutex<drafts::Drafts<String>>,
}

/// An order to save. Dropped, it is withdrawn.
pub struct Drafts;

impl Drafts {
    /// Every one of these CPUs saves what it has at its next check.
    pub fn order(blocks: Blocks, cpus: impl Iterator<Item = Cpu> + Clone) -> Self {
        let outcomes = Mutex::new(drafts::Drafts::new(cpus.clone()));
        let members = cpus.map(|cpu| (cpu.index, HostBlackout::rehearsal(cpu.index, blocks.clone()))).collect();
        *WANTED.write() = Some(Wanted { members, outcomes });
        IS_WANTED.store(true, Ordering::Release);
        if let Some(wanted) = WANTED.read().as_ref() {
            wanted.outcomes.lock().begin(&LEADER);
        }
        Self
    }

    /// `None` while not all have saved; then the first problem, if there is one.
    pub fn outcome(&mut self) -> Option<Result<(), String>> {
        let wanted = WANTED.read();
        let mut outcomes = wanted.as_ref()?.outcomes.lock();
        outcomes.poll(&LEADER).map(|outcome| outcome.map_err(String::clone))
    }
}

impl Drop for Drafts {
    fn drop(&mut self) {
        IS_WANTED.store(false, Ordering::Release);
        *WANTED.write() = None;
    }
}

/// Returns whether the calling CPU may be to save.
#[inline]
pub fn is_wanted() -> bool {
    IS_WANTED.load(Ordering::Acquire)
}

/// Has the CPU `index` take its way, if it is to. `save` returns the outcome, or `None`: the CPU has been there before.
pub fn take(index: u32, save: impl FnOnce(&HostBlackout) -> Option<Result<(), String>>) {
    let wanted = WANTED.read();
    let Some(wanted) = wanted.as_ref() else { return };
    let Some((_, blackout)) = wanted.members.iter().find(|(member, _)| *member == index) else { return };
    if let Some(outcome) = save(blackout) {
        wanted.outcomes.lock().note(index, outcome);
    }
}
