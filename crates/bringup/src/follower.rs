// SPDX-License-Identifier: MIT OR Apache-2.0
//! A woken CPU's part, as a state machine that is polled. Each call does what can be done now and never waits, so that
//! the CPU itself can wait as it likes, and a model can step thousands of them.
//!
//! A CPU that waits for another sleeps: only CPUs that have something to do execute. Before it sleeps it announces that
//! and checks its condition once more; the CPU that changes the condition checks whether it sleeps, and wakes it. The
//! condition is a permission, the partner's answer, or the state of parent and children.
//!
//! ```text
//! arrive ─▶ (releases its children where parked CPUs wake each other)
//!        ─▶ poll … ─▶ Next::Initialise: prepare yourself, then call `initialised`
//!        ─▶ poll … ─▶ Next::Online: take work        (Next::Halt at any time: given up, halt for ever)
//! ```

mod clock;

use crate::cell::CpuCell;
use crate::crew::{Crew, permission};
use crate::hardware::Station;
use crate::plan::Policy;
use crate::relatives::{release, wake_relatives};
use crate::state::State;
use crate::tsc::Measurement;

/// The next action of a polled CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Pause, and poll again: a partner is about to answer or to ask.
    Again,
    /// Sleep until another CPU [wakes](crate::hardware::Wake::wake) this one, or until this time by its own clock;
    /// then poll again.
    Sleep {
        /// In ticks.
        until: u64,
    },
    /// Prepare itself (tables, stacks, interrupt controller), then call [`Follower::initialised`].
    Initialise,
    /// It is online: take work.
    Online,
    /// It has been given up: halt, for ever.
    Halt,
}

/// A CPU that woke and may not go on: it halts, for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// No CPU has this number, or it is the boot CPU's.
    Unknown,
    /// It was not kicked, or has been given up.
    NotExpected(State),
}

#[derive(Clone, Copy, Debug)]
enum Step {
    AwaitInitialisation,
    Initialising,
    AwaitSync { since: Option<u64> },
    Measuring { measurement: Measurement, corrected: Option<i64> },
    AwaitOnline,
}

/// One woken CPU.
#[derive(Debug)]
pub struct Follower<'a> {
    crew: Crew<'a>,
    cell: &'a CpuCell,
    index: u32,
    step: Step,
    /// Ticks to add to its clock to get the boot CPU's, where that could not be corrected.
    clock_offset: i64,
    /// Time of its last answer to a child, by its own clock.
    answered_at: Option<u64>,
}

impl<'a> Follower<'a> {
    /// Records the calling CPU's first sign of life; where parked CPUs wake each other, wakes its children.
    ///
    /// # Errors
    /// [`Refused`] if it may not go on.
    pub fn arrive(crew: &Crew<'a>, index: u32, station: &mut impl Station) -> Result<Self, Refused> {
        let cell = crew.cell(index).filter(|_| index != 0).ok_or(Refused::Unknown)?;
        let broadcast_at = crew.broadcast_at();
        if crew.plan().is_broadcast() && broadcast_at != 0 {
            // This CPU was not kicked by name. If it has been given up meanwhile, the next step reports it.
            cell.kick(broadcast_at);
        }
        cell.advance(State::Kicked, State::Alive, station.now()).map_err(Refused::NotExpected)?;
        if crew.plan().is_relayed() {
            for child in crew.tree().children(index) {
                release(crew, child, station.now(), |child| station.release(child));
            }
        }
        let step = Step::AwaitInitialisation;
        let arrived = Self { crew: *crew, cell, index, step, clock_offset: 0, answered_at: None };
        arrived.report(station);
        Ok(arrived)
    }

    /// Goes as far as it can without waiting.
    pub fn poll(&mut self, station: &mut impl Station) -> Next {
        self.cell.mark_awake();
        let next = self.go_on(station);
        if !matches!(next, Next::Sleep { .. }) {
            return next;
        }
        self.cell.mark_asleep();
        let next = self.go_on(station);
        if !matches!(next, Next::Sleep { .. }) {
            self.cell.mark_awake();
        }
        next
    }

    fn go_on(&mut self, station: &mut impl Station) -> Next {
        if matches!(self.cell.state(), State::Dead(_)) {
            return Next::Halt;
        }
        match self.step {
            Step::AwaitInitialisation if self.may(permission::INITIALISE) => {
                self.step = Step::Initialising;
                Next::Initialise
            }
            Step::AwaitInitialisation | Step::Initialising => self.sleep(station),
            Step::AwaitSync { since } if self.may(permission::SYNCHRONISE) => self.begin_sync(since, station),
            Step::AwaitSync { .. } => self.sleep(station),
            Step::Measuring { measurement, corrected } => self.measure(measurement, corrected, station),
            Step::AwaitOnline => self.go_online(station),
        }
    }

    /// Returns [`Next::Sleep`]: nothing is to be done until another CPU wakes this one.
    fn sleep(&self, station: &mut impl Station) -> Next {
        Next::Sleep { until: station.now().wrapping_add(self.crew.plan().limits.answer) }
    }

    /// Records that the CPU has prepared itself.
    pub fn initialised(&mut self, station: &mut impl Station) -> Next {
        self.step = Step::AwaitSync { since: None };
        self.advance(State::Alive, State::Initialised, station)
    }

    fn may(&self, permission: u32) -> bool {
        self.crew.is_permitted(self.cell, permission)
    }

    fn advance(&mut self, from: State, to: State, station: &mut impl Station) -> Next {
        let now = station.now().wrapping_add_signed(self.clock_offset);
        match self.cell.advance(from, to, now) {
            Ok(()) => {
                self.report(station);
                Next::Again
            }
            Err(_) => Next::Halt,
        }
    }

    /// Reports the step; wakes the boot CPU where that waits for each of this one's steps.
    fn report(&self, station: &mut impl Station) {
        if self.crew.plan().policy == Policy::Serial {
            self.crew.rouse(0, station);
        }
    }

    fn go_online(&mut self, station: &mut impl Station) -> Next {
        if !self.may(permission::GO_ONLINE) {
            return self.sleep(station);
        }
        if self.crew.stays_to_answer() && self.is_needed(station) {
            let stay = self.crew.plan().limits.stay;
            let is_in_exchange = self.answered_at.is_some_and(|at| station.now().wrapping_sub(at) <= stay);
            return if is_in_exchange { Next::Again } else { self.sleep(station) };
        }
        match self.advance(State::TscSynchronised, State::Online, station) {
            Next::Again => {
                if self.crew.count_online(self.index) {
                    self.crew.rouse(0, station);
                }
                wake_relatives(&self.crew, self.index, station);
                Next::Online
            }
            next => next,
        }
    }

    /// Answers children that ask. Returns whether any of them still may ask. One that wakes later asks the boot CPU.
    fn is_needed(&mut self, station: &mut impl Station) -> bool {
        let mut is_needed = false;
        for child in self.crew.tree().children(self.index) {
            let Some(cell) = self.crew.cell(child) else { continue };
            let offset = self.clock_offset;
            if cell.exchange.answer(self.index, || station.now().wrapping_add_signed(offset)) {
                self.crew.rouse(child, station);
                self.answered_at = Some(station.now());
            }
            is_needed |= matches!(cell.state(), State::Alive | State::Initialised);
        }
        is_needed
    }
}
