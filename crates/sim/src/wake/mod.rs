// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waking CPUs: a discrete-event model under the real bring-up code.
//!
//! The boot CPU runs [`bringup::bring_up`] itself; every other one is a [`bringup::Follower`], stepped when its
//! next event is due, on the same shared words and with a clock of its own. What the model adds is time: waking,
//! preparing, interrupts, cache lines, queues where many read or write one line, and [`Fate`]s.
//!
//! ```text
//! bring_up ──▶ World (Kick): spends time ──▶ events due: CPU ──▶ Follower ──▶ shared words
//!     ▲                                                                                 │
//!     └──────────────────────────────── polls ──────────────────────────────────────────┘
//! ```
//!
//! It leaves out memory bandwidth, power and thermal limits, firmware, and packages further away than others.

mod cpu;
mod machine;
mod setup;
mod world;

use bringup::{CpuCell, Crew, GROUP_CPUS, Group, ParkSlot, Policy, Shared, State};
use bringup::{bring_up, bring_up_some, in_order, last_first_sign};

pub use machine::Machine;
pub use setup::{CpuOutcome, Fate, Outcome, Setup};

use crate::random::Random;
use cpu::Activity;
use world::World;

/// Brings up a modelled machine.
///
/// # Panics
/// Without any CPU.
pub fn simulate(machine: &Machine, setup: &Setup) -> Outcome {
    let count = setup.cpus as usize;
    let apic_ids: Vec<u32> = (0..setup.cpus).collect();
    let cells: Vec<_> = (0..count).map(|_| CpuCell::new()).collect();
    let groups: Vec<_> = (0..count.div_ceil(GROUP_CPUS)).map(|_| Group::new()).collect();
    let shared = Shared::new();
    let slots = park_all(setup);
    cells.iter().skip(1).zip(&slots).for_each(|(cell, _)| assert!(cell.mark_parked(), "a fresh cell"));
    let crew = Crew::new(&apic_ids, &cells, &groups, &shared, setup.plan(machine));
    let crew = crew.unwrap_or_else(|error| panic!("{error}"));
    let mut world = World::new(crew, machine, &slots, setup);
    let mut summary = match &setup.wanted {
        None => bring_up(&crew, &mut world),
        Some(wanted) => bring_up_some(&crew, wanted, &mut world),
    };
    for &index in &setup.later {
        if cells.get(index as usize).is_some_and(|cell| cell.leave(State::Offline).is_ok()) {
            world.cpus[index as usize].activity = Activity::Asleep;
        }
        summary.dead.extend(bring_up_some(&crew, &[index], &mut world).dead);
    }
    let waits = in_order(&crew, summary.wait_began);
    let results = waits.map(|(index, waits)| {
        let cpu = &world.cpus[index as usize];
        CpuOutcome {
            state: crew.state(index),
            takes_work: matches!(cpu.activity, Activity::Working),
            sync: cells[index as usize].sync(),
            skew: cpu.skew,
            resets_while_running: cpu.resets_while_running,
            waits,
        }
    });
    let last_first_sign = last_first_sign(&crew, summary.wait_began);
    Outcome { summary, last_first_sign, cpus: results.collect() }
}

/// Returns the slots that the previous image left: every CPU at its mailbox. Empty where the policy wakes CPUs by
/// interrupts.
fn park_all(setup: &Setup) -> Vec<ParkSlot> {
    if setup.policy != Policy::Park {
        return Vec::new();
    }
    let slots: Vec<_> = (0..setup.cpus).map(|_| ParkSlot::new()).collect();
    for (index, slot) in (0..).zip(&slots) {
        if !setup.fates.contains(&(index, Fate::BadSlot)) {
            slot.park(index);
        }
    }
    slots
}

/// Ticks that Linux 5.10 would take one CPU after the other, by the published waits: kick, four waits, next.
pub fn linux_serial_ticks(machine: &Machine, cpus: u32) -> u64 {
    let mut random = Random(1);
    let cores = cpus.div_ceil(machine.threads_per_core);
    let of = |index: u32| {
        let initialisation = if index < cores { &machine.first_thread } else { &machine.sibling };
        [&machine.first_sign, initialisation, &machine.linux_sync, &machine.going_online]
            .map(|range| random.within(range))
            .iter()
            .sum::<u64>()
            + 2 * machine.interrupt
            + 2 * machine.reset_vector
    };
    (1..cpus).map(of).sum()
}

#[cfg(test)]
mod tests;
