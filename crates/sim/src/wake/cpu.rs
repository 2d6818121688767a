// SPDX-License-Identifier: MIT OR Apache-2.0
//! One modelled CPU: what it does when its next event is due.

use bringup::state::Phase;
use bringup::{Clock, Crew, Follower, Next, Refused, State, Station, Wake};

use super::setup::Fate;

/// Activity of the CPU.
#[derive(Debug)]
pub(super) enum Activity<'a> {
    /// Not reset yet, or waiting for its start-up interrupt.
    Asleep,
    /// On its way to its first instruction.
    Waking,
    /// Fetching that instruction.
    Fetching,
    /// In bring-up.
    Running(Follower<'a>),
    /// Preparing itself.
    Initialising(Follower<'a>),
    /// Takes work.
    Working,
    /// Halted for ever.
    Halted,
}

/// Consequence of an event.
pub(super) enum Due {
    /// Nothing, ever.
    Never,
    /// The next event, this much later.
    In(u64),
    /// The same, unless another CPU wakes this one before.
    Sleep(u64),
    /// It fetches its first instruction.
    Fetch,
    /// It begins to prepare itself.
    Initialisation,
}

#[derive(Debug)]
pub(super) struct Cpu<'a> {
    pub fate: Fate,
    pub activity: Activity<'a>,
    /// Its counter minus the boot CPU's.
    pub skew: i64,
    pub adjust: Option<u64>,
    pub startups_to_lose: u32,
    pub resets_while_running: u32,
    /// Time of its next event, and whether it sleeps until then.
    pub next: Option<(u64, bool)>,
}

/// Resources of a CPU at one event. An event happens at one moment, so that causes come before effects; its duration is
/// added to the time of the next.
pub(super) struct Moment<'p> {
    pub time: u64,
    pub spent: u64,
    pub read_clock: u64,
    pub line: u64,
    pub interrupt: u64,
    pub skew: &'p mut i64,
    pub adjust: &'p mut Option<u64>,
    /// Children that it released, and when.
    pub released: Vec<(u32, u64)>,
    /// Those it woke, and when.
    pub woken: Vec<(u32, u64)>,
}

impl Clock for Moment<'_> {
    fn now(&mut self) -> u64 {
        self.spent += self.read_clock;
        self.time.wrapping_add_signed(*self.skew)
    }
}

impl Wake for Moment<'_> {
    fn wake(&mut self, index: u32) {
        self.spent += self.interrupt;
        self.woken.push((index, self.time + self.spent));
    }
}

impl Station for Moment<'_> {
    fn tsc_adjust(&mut self) -> Option<u64> {
        *self.adjust
    }

    fn set_tsc_adjust(&mut self, value: u64) {
        let change = value.wrapping_sub(self.adjust.unwrap_or(0)) as i64;
        *self.skew = self.skew.wrapping_add(change);
        *self.adjust = Some(value);
    }

    fn release(&mut self, index: u32) -> bool {
        self.spent += self.line;
        self.released.push((index, self.time + self.spent));
        true
    }
}

impl<'a> Cpu<'a> {
    /// Returns its next event. `sample` is the cost of one sample of a line that another CPU may have written.
    pub fn act(&mut self, crew: &Crew<'a>, index: u32, fate: Fate, sample: u64, moment: &mut Moment<'_>) -> Due {
        match core::mem::replace(&mut self.activity, Activity::Asleep) {
            Activity::Waking => {
                self.activity = Activity::Fetching;
                Due::Fetch
            }
            Activity::Fetching => self.arrive(crew, index, moment),
            Activity::Running(follower) => self.poll(crew, index, follower, fate, sample, moment),
            Activity::Initialising(mut follower) => {
                let next = follower.initialised(moment);
                self.activity = Activity::Running(follower);
                if next == Next::Halt { self.halt() } else { Due::In(0) }
            }
            other => {
                self.activity = other;
                Due::Never
            }
        }
    }

    fn arrive(&mut self, crew: &Crew<'a>, index: u32, moment: &mut Moment<'_>) -> Due {
        match Follower::arrive(crew, index, moment) {
            Ok(follower) => {
                self.activity = Activity::Running(follower);
                Due::In(0)
            }
            Err(Refused::Unknown | Refused::NotExpected(_)) => self.halt(),
        }
    }

    fn poll(
        &mut self,
        crew: &Crew<'a>,
        index: u32,
        mut follower: Follower<'a>,
        fate: Fate,
        sample: u64,
        moment: &mut Moment<'_>,
    ) -> Due {
        let dies_here = |phase: Phase| fate == Fate::DiesIn(phase);
        let is_struck = match crew.state(index) {
            State::Alive => dies_here(Phase::Initialisation),
            State::Initialised => dies_here(Phase::TscSync),
            State::TscSynchronised => dies_here(Phase::Online),
            _ => false,
        };
        if is_struck {
            return self.halt();
        }
        let next = follower.poll(moment);
        self.activity = Activity::Running(follower);
        match next {
            Next::Again => Due::In(sample),
            Next::Sleep { until } => Due::Sleep((until.wrapping_sub(moment.now()) as i64).max(0) as u64),
            Next::Initialise => Due::Initialisation,
            Next::Halt => self.halt(),
            Next::Online => {
                self.activity = Activity::Working;
                Due::Never
            }
        }
    }

    pub fn begin_initialisation(&mut self) {
        self.activity = match core::mem::replace(&mut self.activity, Activity::Halted) {
            Activity::Running(follower) => Activity::Initialising(follower),
            other => other,
        };
    }

    fn halt(&mut self) -> Due {
        self.activity = Activity::Halted;
        Due::Never
    }
}
