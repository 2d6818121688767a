// SPDX-License-Identifier: MIT OR Apache-2.0
//! The boot CPU's part: kick, then wait.
//!
//! [`BringUp::begin`] kicks and returns at once, so that the rest of the boot goes on while the others wake;
//! [`BringUp::wait`] waits. Waiting is sleeping: the CPU that asks for the time, and the last to arrive, wakes the boot
//! CPU. Now and then it checks some CPUs for one that makes no progress. The number of CPUs checked per turn does not
//! grow with their number.

mod summary;
mod watch;

use alloc::vec::Vec;
use core::ops::Range;

use self::watch::Watch;
use crate::crew::{Crew, permission};
use crate::hardware::Kick;
use crate::plan::Policy;
use crate::relatives::release;
use crate::state::State;

pub use self::summary::Summary;

/// Brings up every CPU of the crew but the calling one, which is number 0. Returns within
/// [`Limits::total`](crate::startup::Limits::total) per batch, whatever the others do.
pub fn bring_up(crew: &Crew<'_>, hardware: &mut impl Kick) -> Summary {
    let all: Vec<u32> = (1..crew.count()).collect();
    bring_up_some(crew, &all, hardware)
}

/// Brings up these CPUs of the crew, in this order; the others are left as they are. Numbers that no CPU has, and the
/// calling CPU's, are passed over. May be called again, for CPUs that have left meanwhile
/// ([`CpuCell::leave`](crate::CpuCell::leave)): with a plan that resets them by name, not with one that wakes all.
pub fn bring_up_some(crew: &Crew<'_>, members: &[u32], hardware: &mut impl Kick) -> Summary {
    BringUp::begin(crew, members, hardware).wait(hardware)
}

/// A bring-up under way.
#[derive(Debug)]
pub struct BringUp<'a> {
    crew: Crew<'a>,
    members: Vec<u32>,
    summary: Summary,
    /// Time at which the start-up interrupts of the first batch are due; the rest of its kick is done.
    startup_due: Option<u64>,
    /// CPUs that will have gone online before the batch: one that was seen online may be counted a moment later.
    online_before: u32,
    /// Of the batch: those that were not online already.
    newcomers: u32,
}

impl<'a> BringUp<'a> {
    /// Kicks these CPUs, and waits for none. Serially, nothing can be done before [`Self::wait`].
    pub fn begin(crew: &Crew<'a>, members: &[u32], hardware: &mut impl Kick) -> Self {
        let began = hardware.now();
        let summary = Summary { began, ..Summary::default() };
        let members: Vec<u32> = members.iter().copied().filter(|index| (1..crew.count()).contains(index)).collect();
        let mut this =
            Self { crew: *crew, members, summary, startup_due: None, online_before: crew.online(), newcomers: 0 };
        if crew.plan().policy != Policy::Serial {
            crew.permit_all(permission::GO_ONLINE);
            this.kick(0..this.members.len(), hardware);
            this.tend(hardware);
        }
        this
    }

    /// Sends the start-up interrupts if they have become due: call it when it suits. Start-up interrupts wait for the
    /// delay after INIT.
    pub fn tend(&mut self, hardware: &mut impl Kick) {
        let now = hardware.now();
        if self.startup_due.is_some_and(|due| now.wrapping_sub(due) as i64 >= 0) {
            self.startup_due = None;
            start(&self.crew, &self.members, hardware);
            self.summary.kick_ticks += hardware.now().wrapping_sub(now);
        }
    }

    /// Waits until every CPU is online or given up.
    pub fn wait(mut self, hardware: &mut impl Kick) -> Summary {
        let is_serial = self.crew.plan().policy == Policy::Serial;
        let batch = self.crew.plan().policy.batch(self.crew.count()).max(1) as usize;
        for first in (0..self.members.len()).step_by(batch) {
            let places = first..(first + batch).min(self.members.len());
            if is_serial {
                self.kick(places.clone(), hardware);
            }
            let started_at = self.finish_kick(places.clone(), hardware);
            let began = hardware.now();
            if first == 0 {
                self.summary.wait_began = if is_serial { self.summary.began } else { started_at.unwrap_or(began) };
            }
            let members = &self.members[places];
            self.summary.online += members.len() as u32;
            let (newcomers, dead_before) = (self.newcomers, self.summary.dead.len());
            let watch = Watch::new(self.crew, members, self.online_before, newcomers, began);
            watch.wait(hardware, &mut self.summary);
            self.online_before += newcomers.saturating_sub((self.summary.dead.len() - dead_before) as u32);
            hardware.clear_reset_vector();
            self.summary.wait_ticks += hardware.now().wrapping_sub(began);
        }
        self.summary.online -= self.summary.dead.len() as u32;
        self.summary.total_ticks = hardware.now().wrapping_sub(self.summary.began);
        self.summary
    }

    fn kick(&mut self, places: Range<usize>, hardware: &mut impl Kick) {
        let began = hardware.now();
        let members = &self.members[places];
        self.newcomers = members.iter().filter(|index| !self.crew.state(**index).has_final_clock()).count() as u32;
        self.crew.expect(members);
        hardware.set_reset_vector(self.crew.plan().startup_page);
        self.startup_due = kick(&self.crew, members, hardware);
        self.summary.kick_ticks += hardware.now().wrapping_sub(began);
    }

    /// Sleeps for the rest of the delay after INIT, and sends the start-up interrupts. Returns the time of that; `None`
    /// where it has been done before.
    fn finish_kick(&mut self, places: Range<usize>, hardware: &mut impl Kick) -> Option<u64> {
        let began = hardware.now();
        let due = self.startup_due.take()?;
        let mut now = began;
        while (due.wrapping_sub(now) as i64) > 0 {
            hardware.sleep(due);
            now = hardware.now();
        }
        start(&self.crew, &self.members[places], hardware);
        self.summary.kick_ticks += hardware.now().wrapping_sub(began);
        Some(now)
    }
}

/// Orders the batch to start; waits for no CPU. Returns when start-up interrupts are due, where kicks are interrupts.
fn kick(crew: &Crew<'_>, members: &[u32], hardware: &mut impl Kick) -> Option<u64> {
    let plan = crew.plan();
    if plan.is_relayed() {
        // The boot CPU's children, and the children of CPUs that do not come.
        let has_parent =
            |index: &u32| !matches!(crew.state(crew.tree().parent(*index)), State::Offline | State::Dead(_));
        let is_mine = |index: &&u32| crew.tree().parent(**index) == 0 || !has_parent(index);
        for child in members.iter().filter(is_mine) {
            release(crew, *child, hardware.now(), |child| hardware.release(child));
        }
        return None;
    }
    if is_for_all(crew, members) {
        // Never 0, which means that nothing was sent.
        crew.note_broadcast(hardware.now().max(1));
        let reset_at = plan.reset_at.unwrap_or_else(|| {
            hardware.broadcast_init();
            hardware.now()
        });
        return Some(reset_at.wrapping_add(plan.limits.after_init));
    }
    for index in members.iter().copied() {
        let (Some(cell), Some(apic_id)) = (crew.cell(index), crew.apic_id(index)) else { continue };
        // No CPU that runs is reset.
        if cell.kick(hardware.now()) {
            hardware.send_init(apic_id);
        }
    }
    // One delay for all of them.
    Some(hardware.now().wrapping_add(plan.limits.after_init))
}

/// INIT to all would reset those that run.
fn is_for_all(crew: &Crew<'_>, members: &[u32]) -> bool {
    crew.plan().is_broadcast() && crew.online() == 0 && members.len() + 1 == crew.count() as usize
}

/// Sends the start-up interrupts.
fn start(crew: &Crew<'_>, members: &[u32], hardware: &mut impl Kick) {
    let page = crew.plan().startup_page;
    if is_for_all(crew, members) {
        return hardware.broadcast_startup(page);
    }
    for index in members.iter().copied().filter(|index| crew.state(*index) == State::Kicked) {
        crew.apic_id(index).into_iter().for_each(|apic_id| hardware.send_startup(apic_id, page));
    }
}
