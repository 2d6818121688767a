// SPDX-License-Identifier: MIT OR Apache-2.0
//! The boot CPU's part: kick, then wait.
//!
//! [`BringUp::begin`] kicks and returns at once, so that the rest of the boot goes on while the others wake;
//! [`BringUp::wait`] waits. Waiting is sleeping: the CPU that asks for the time, and the last to arrive, wakes the boot
//! CPU. Now and then it checks some CPUs for one that stands still. What it checks per turn does not
//! grow with their number.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use crate::cell::CpuCell;
use crate::crew::{Crew, Policy, permission};
use crate::follower::{release, tell_relatives};
use crate::hardware::Kick;
use crate::state::{Phase, State};

/// CPUs checked per look: few, so that the CPU that asks for the time is not kept waiting by checks lines that
/// others have just written.
const LOOKS: usize = 64;

/// How bring-up went. What each CPU waited for is in its cell ([`crate::Waits`]).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// CPUs online, the boot CPU not counted.
    pub online: u32,
    /// Those given up, with what they were waited for.
    pub dead: Vec<(u32, Phase)>,
    /// When the first was kicked.
    pub began: u64,
    /// When the boot CPU had nothing left to do but wait; sending the start-up interrupts, where they were left
    /// until then, is part of it.
    pub wait_began: u64,
    /// Ticks spent kicking, what was left of the delay after INIT included.
    pub kick_ticks: u64,
    /// Ticks spent waiting.
    pub wait_ticks: u64,
    /// Ticks from the first kick until no CPU was waited for: more than the two before where the boot CPU
    /// did something else in between.
    pub total_ticks: u64,
}

/// Brings up every CPU of the crew but the calling one, which is number 0. Returns within
/// [`Limits::total`](crate::startup::Limits::total) per batch, whatever the others do.
pub fn bring_up(crew: &Crew<'_>, hardware: &mut impl Kick) -> Summary {
    let all: Vec<u32> = (1..crew.count()).collect();
    bring_up_some(crew, &all, hardware)
}

/// Brings up these CPUs of the crew, in this order; the others are left as they are. Numbers of nobody and of the
/// calling CPU are passed over. May be called again, for CPUs that have left meanwhile
/// ([`CpuCell::leave`]): with a plan that resets them by name, not with one that wakes all.
pub fn bring_up_some(crew: &Crew<'_>, members: &[u32], hardware: &mut impl Kick) -> Summary {
    BringUp::begin(crew, members, hardware).wait(hardware)
}

/// A bring-up under way.
#[derive(Debug)]
pub struct BringUp<'a> {
    crew: Crew<'a>,
    members: Vec<u32>,
    summary: Summary,
    /// The first batch is kicked but for its start-up interrupts, which are due then.
    startup_due: Option<u64>,
    /// How many will have gone online before the batch: one that was seen online may be counted a moment later.
    online_before: u32,
    /// Of the batch: those that were not online already.
    newcomers: u32,
}

impl<'a> BringUp<'a> {
    /// Kicks these CPUs, and waits for nobody. Serially, nothing can be done before it is waited.
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

    /// Does what has become due since: call it when it suits. Start-up interrupts wait for the delay after INIT.
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

    /// Sleeps what is left of the delay after INIT, and sends the start-up interrupts; returns when. `None` where that
    /// has been done before.
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

/// Orders the batch to start; waits for nobody. Returns when start-up interrupts are due, where kicks are interrupts.
fn kick(crew: &Crew<'_>, members: &[u32], hardware: &mut impl Kick) -> Option<u64> {
    let plan = crew.plan();
    if plan.is_relayed() {
        // The boot CPU's children, and those whose parent does not come.
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

/// What is known about a CPU that is waited for.
#[derive(Clone, Copy)]
struct Seen {
    awaited: Phase,
    since: u64,
    was_kicked_again: bool,
}

/// A batch being waited for.
struct Watch<'a> {
    crew: Crew<'a>,
    members: &'a [u32],
    seen: Vec<Seen>,
    online_before: u32,
    newcomers: u32,
    dead: u32,
    next: usize,
    /// When the next sample of those that are silent is due.
    next_poll: u64,
    /// Settled CPUs seen in a row.
    final_clocks_in_a_row: usize,
}

impl<'a> Watch<'a> {
    fn new(crew: Crew<'a>, members: &'a [u32], online_before: u32, newcomers: u32, now: u64) -> Self {
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

    fn wait(mut self, hardware: &mut impl Kick, summary: &mut Summary) {
        let Some(own_cell) = self.crew.cell(0) else { return };
        loop {
            own_cell.get_up();
            if self.attend(hardware, summary) {
                continue;
            }
            own_cell.lie_down();
            if !self.is_over() && !self.attend(hardware, summary) {
                hardware.sleep(self.next_poll);
            }
            if self.is_over() {
                return own_cell.get_up();
            }
        }
    }

    fn is_over(&self) -> bool {
        let online = self.crew.online().saturating_sub(self.online_before);
        online + self.dead >= self.newcomers || self.final_clocks_in_a_row >= self.seen.len()
    }

    /// Does what there is to do; whether that was anything.
    fn attend(&mut self, hardware: &mut impl Kick, summary: &mut Summary) -> bool {
        let mut has_done = false;
        for index in self.crew.take_hands() {
            has_done |= self.answer(index, hardware);
        }
        let now = hardware.now();
        let is_serial = self.crew.plan().policy == Policy::Serial;
        let is_due = now.wrapping_sub(self.next_poll) as i64 >= 0;
        if is_due {
            self.next_poll = now.wrapping_add(self.crew.plan().limits.look);
        }
        if is_due || is_serial {
            for _ in 0..LOOKS.min(self.seen.len()) {
                has_done |= self.probe_next(hardware, summary);
            }
        }
        has_done
    }

    /// Stays with one that asks, for a bounded while: the answer wakes it, its next question comes at once, and a quick
    /// answer is a good one. Whether it had asked.
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

    /// Returns whether it went a step.
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
            self.bury(index, phase, hardware, summary);
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

    /// Kicks a silent CPU once more; gives up one that stands still. Returns what that one was waited for.
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
        // If it has moved at this very moment, it lives.
        cell.condemn(state, now).ok()
    }

    /// One was given up: nobody waits for it any more.
    fn bury(&mut self, index: u32, phase: Phase, hardware: &mut impl Kick, summary: &mut Summary) {
        self.dead += 1;
        summary.dead.push((index, phase));
        self.crew.expect_no_more(index);
        hardware.given_up(index);
        tell_relatives(&self.crew, index, hardware);
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

/// The second start-up interrupt, for a CPU that gave no sign; one that has started ignores it. A parked one
/// whose parent did not wake it is released directly.
fn kick_again(crew: &Crew<'_>, index: u32, hardware: &mut impl Kick) {
    if crew.plan().is_relayed() {
        release(crew, index, hardware.now(), |index| hardware.release(index));
    } else if let Some(apic_id) = crew.apic_id(index) {
        hardware.send_startup(apic_id, crew.plan().startup_page);
    }
}
