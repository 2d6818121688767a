// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waiting for a batch of CPUs: answering those that ask for the time, giving up those that make no progress.

use alloc::vec;
use alloc::vec::Vec;

use super::summary::Summary;
use crate::cell::CpuCell;
use crate::crew::{Crew, permission};
use crate::hardware::Kick;
use crate::plan::Policy;
use crate::relatives::{release, wake_relatives};
use crate::state::{Phase, State};

/// CPUs checked per poll: few, so that the CPU that asks for the time is not kept waiting by reads of lines that others
/// have just written.
const CPUS_PER_POLL: usize = 64;

/// Last observation of a CPU that is waited for.
#[derive(Clone, Copy)]
struct Seen {
    awaited: Phase,
    since: u64,
    was_kicked_again: bool,
}

/// A batch being waited for.
pub(super) struct Watch<'a> {
    crew: Crew<'a>,
    members: &'a [u32],
    seen: Vec<Seen>,
    online_before: u32,
    newcomers: u32,
    dead: u32,
    next: usize,
    /// Time of the next poll of the CPUs that have not reported.
    next_poll: u64,
    /// Number of CPUs in a row that were seen with a final clock.
    final_clocks_in_a_row: usize,
}

impl<'a> Watch<'a> {
    pub(super) fn new(crew: Crew<'a>, members: &'a [u32], online_before: u32, newcomers: u32, now: u64) -> Self {
        let seen = vec![Seen { awaited: Phase::FirstSign, since: now, was_kicked_again: false }; members.len()];
        Self {
            crew,
            members,
            seen,
            online_before,
            newcomers,
            dead: 0,
            next: 0,
            next_poll: now,
            final_clocks_in_a_row: 0,
        }
    }

    pub(super) fn wait(mut self, hardware: &mut impl Kick, summary: &mut Summary) {
        let Some(own_cell) = self.crew.cell(0) else { return };
        loop {
            own_cell.mark_awake();
            if self.attend(hardware, summary) {
                continue;
            }
            own_cell.mark_asleep();
            if !self.is_over() && !self.attend(hardware, summary) {
                hardware.sleep(self.next_poll);
            }
            if self.is_over() {
                return own_cell.mark_awake();
            }
        }
    }

    fn is_over(&self) -> bool {
        let online = self.crew.online().saturating_sub(self.online_before);
        online + self.dead >= self.newcomers || self.final_clocks_in_a_row >= self.seen.len()
    }

    /// Answers requests and checks CPUs if that is due. Returns whether there was anything to do.
    fn attend(&mut self, hardware: &mut impl Kick, summary: &mut Summary) -> bool {
        let mut has_done = false;
        for index in self.crew.take_requests() {
            has_done |= self.answer(index, hardware);
        }
        let now = hardware.now();
        let is_serial = self.crew.plan().policy == Policy::Serial;
        let is_due = now.wrapping_sub(self.next_poll) as i64 >= 0;
        if is_due {
            self.next_poll = now.wrapping_add(self.crew.plan().limits.poll_interval);
        }
        if is_due || is_serial {
            for _ in 0..CPUS_PER_POLL.min(self.seen.len()) {
                has_done |= self.probe_next(hardware, summary);
            }
        }
        has_done
    }

    /// Answers the questions of one CPU, for a bounded while: the answer wakes it, its next question comes at once, and
    /// a quick answer is a good one. Returns whether it had asked.
    fn answer(&self, index: u32, hardware: &mut impl Kick) -> bool {
        let Some(cell) = self.crew.cell(index) else { return false };
        let (limits, mut has_answered) = (&self.crew.plan().limits, false);
        let mut since = hardware.now();
        loop {
            if cell.exchange.answer(0, || hardware.now()) {
                self.crew.rouse(index, hardware);
                (has_answered, since) = (true, hardware.now());
            } else if cell.state() != State::Initialised || !has_answered {
                return has_answered;
            } else {
                hardware.pause();
            }
            if hardware.now().wrapping_sub(since) > limits.stay {
                return has_answered;
            }
        }
    }

    /// Checks the next CPU. Returns whether it has made a step.
    fn probe_next(&mut self, hardware: &mut impl Kick, summary: &mut Summary) -> bool {
        let position = self.next;
        self.next = (position + 1) % self.seen.len();
        let Some(&index) = self.members.get(position) else { return false };
        let Some(cell) = self.crew.cell(index) else { return false };
        let state = cell.state();
        self.final_clocks_in_a_row = if state.has_final_clock() { self.final_clocks_in_a_row + 1 } else { 0 };
        if state.has_final_clock() {
            return false;
        }
        let awaited = state.awaited().unwrap_or(Phase::FirstSign);
        let is_news = self.note(position, awaited, hardware.now());
        if is_news && self.crew.plan().policy == Policy::Serial {
            permit_next_step(cell, awaited);
            self.crew.rouse(index, hardware);
        }
        if let Some(phase) = self.watch(position, index, (cell, state, awaited), hardware) {
            self.give_up(index, phase, hardware, summary);
        }
        is_news
    }

    fn note(&mut self, position: usize, awaited: Phase, now: u64) -> bool {
        let seen = &mut self.seen[position];
        let is_news = seen.awaited != awaited;
        if is_news {
            (seen.awaited, seen.since) = (awaited, now);
        }
        is_news
    }

    /// Kicks an unresponsive CPU once more; gives up one that makes no progress. Returns the phase that that one was
    /// waited for in.
    fn watch(
        &mut self,
        position: usize,
        index: u32,
        (cell, state, awaited): (&CpuCell, State, Phase),
        hardware: &mut impl Kick,
    ) -> Option<Phase> {
        let limits = &self.crew.plan().limits;
        let now = hardware.now();
        let seen = &mut self.seen[position];
        let waited = now.wrapping_sub(seen.since);
        if awaited == Phase::FirstSign && waited > limits.second_kick && !seen.was_kicked_again {
            seen.was_kicked_again = true;
            kick_again(&self.crew, index, hardware);
        }
        if waited <= limits.of(awaited) {
            return None;
        }
        // If it has made a step at this very moment, it is not given up.
        cell.condemn(state, now).ok()
    }

    /// Records that a CPU was given up: the boot CPU does not wait for it any more.
    fn give_up(&mut self, index: u32, phase: Phase, hardware: &mut impl Kick, summary: &mut Summary) {
        self.dead += 1;
        summary.dead.push((index, phase));
        self.crew.expect_no_more(index);
        hardware.given_up(index);
        wake_relatives(&self.crew, index, hardware);
    }
}

/// In the serial policy each step is permitted once the one before has been seen.
fn permit_next_step(cell: &CpuCell, awaited: Phase) {
    match awaited {
        Phase::FirstSign => {}
        Phase::Initialisation => cell.permit(permission::INITIALISE),
        Phase::TscSync => cell.permit(permission::SYNCHRONISE),
        Phase::Online => cell.permit(permission::GO_ONLINE),
    }
}

/// Sends the second start-up interrupt to a CPU that gave no sign; one that has started ignores it. A parked one that
/// its parent did not wake is released directly.
fn kick_again(crew: &Crew<'_>, index: u32, hardware: &mut impl Kick) {
    if crew.plan().is_relayed() {
        release(crew, index, hardware.now(), |index| hardware.release(index));
    } else if let Some(apic_id) = crew.apic_id(index) {
        hardware.send_startup(apic_id, crew.plan().startup_page);
    }
}
