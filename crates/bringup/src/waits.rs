// SPDX-License-Identifier: MIT OR Apache-2.0
//! The boot CPU's waits, CPU by CPU.
//!
//! The boot CPU waits for all at once, so its time must be shared out. It counts as waiting for the CPUs in their
//! order, for each through its four phases; a phase that is over by then costs nothing. In the serial policy it does
//! wait in exactly this order. The waits are worked out afterwards, from the stamps that the CPUs left.

use crate::cell::{CpuCell, Stamps};
use crate::crew::Crew;
use crate::plan::Policy;
use crate::state::{Phase, State};

/// Ticks that the boot CPU waited on one CPU's account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// For its first sign of life.
    pub first_sign: u64,
    /// For its initialisation.
    pub initialisation: u64,
    /// For its clock.
    pub tsc_sync: u64,
    /// For its going online.
    pub online: u64,
}

impl Waits {
    /// All four.
    pub const fn total(&self) -> u64 {
        self.first_sign.saturating_add(self.initialisation).saturating_add(self.tsc_sync).saturating_add(self.online)
    }

    /// Moves `clock` on past this CPU's stamps. A stamp in the past (one that counters apart made, too) costs nothing.
    fn of(clock: &mut u64, stamps: &Stamps, state: State) -> Self {
        let mut until = |stamp: u64| {
            let waited = stamp.saturating_sub(*clock);
            *clock = stamp.max(*clock);
            waited
        };
        let reached = |phase| match state {
            State::Dead(died) => phase < died,
            _ => true,
        };
        // A phase in which it died lasted until it was given up; those behind it never were.
        let mut phase = |phase, stamp| match state {
            State::Dead(died) if died == phase => until(stamps.dead),
            _ if reached(phase) => until(stamp),
            _ => 0,
        };
        Self {
            first_sign: phase(Phase::FirstSign, stamps.alive),
            initialisation: phase(Phase::Initialisation, stamps.initialised),
            tsc_sync: phase(Phase::TscSync, stamps.synchronised),
            online: phase(Phase::Online, stamps.online),
        }
    }
}

/// Returns the waits of each CPU of a crew but the first, once bring-up is over. `began` is
/// [`Summary::began`](crate::Summary::began) plus the time that the kicks took.
pub fn in_order<'a>(crew: &Crew<'a>, began: u64) -> impl Iterator<Item = (u32, Waits)> + use<'a> {
    let crew = *crew;
    let is_serial = crew.plan().policy == Policy::Serial;
    (1..crew.count()).scan(began, move |clock, index| {
        let (stamps, state) = crew.cell(index).map(|cell: &CpuCell| (cell.stamps(), cell.state()))?;
        if is_serial {
            // Waiting for this one began when it was kicked.
            *clock = stamps.kicked.max(*clock);
        }
        Some((index, Waits::of(clock, &stamps, state)))
    })
}

/// Ticks from `began` until the last of a crew's CPUs gave its first sign of life; 0 if all had. One that gave
/// none counts until it was given up.
pub fn last_first_sign(crew: &Crew<'_>, began: u64) -> u64 {
    let of = |index| {
        let cell: &CpuCell = crew.cell(index)?;
        let stamps = cell.stamps();
        Some(if cell.state() == State::Dead(Phase::FirstSign) { stamps.dead } else { stamps.alive })
    };
    (1..crew.count()).filter_map(of).map(|sign| sign.saturating_sub(began)).max().unwrap_or(0)
}

#[cfg(test)]
#[path = "waits_tests.rs"]
mod tests;
