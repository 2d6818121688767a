// SPDX-License-Identifier: MIT OR Apache-2.0
//! The steps of a CPU in the new image until all CPUs have restored their guests, or go back.
//!
//! ```text
//! Arrived ─Restore▶ Restoring ─▶ Restored ─▶ Waiting ─ all ──▶ TakeOver
//!                       │ fails: gives the CPU up   └─ rolled back, or late ──▶ GoBack
//! ```
//!
//! The CPU that restores last commits. From the commit on the old image decides nothing.

use crate::platform::Platform;
use crate::takeover::{Takeover, Verdict};
use crate::trial::Stamp;

/// The caller's next action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Restores all that this CPU carries, then calls [`Inbound::restored`]; or gives the CPU up.
    Restore,
    /// Waits a moment.
    Pause,
    /// Makes the CPU this image's own, and enters guests.
    TakeOver,
    /// Goes back to the old image for good.
    GoBack,
}

/// One CPU's state.
#[derive(Debug)]
pub struct Inbound {
    index: u32,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Arrived,
    Restored,
    Waiting,
    Over(Act),
}

impl Inbound {
    /// Begins for the CPU `index`, which has arrived.
    #[must_use]
    pub fn begin(index: u32) -> Self {
        Self { index, state: State::Arrived }
    }

    /// Notes that the CPU has restored all of its slots.
    pub fn restored(&mut self) {
        self.state = State::Restored;
    }

    /// Returns the next act. Allocates nothing, waits for no lock, and returns at once.
    pub fn next(&mut self, words: &Takeover, platform: &impl Platform) -> Act {
        match self.state {
            State::Arrived => Act::Restore,
            State::Restored => {
                platform.stamp(Stamp::Restored);
                self.follow(words.has_restored(), platform)
            }
            State::Waiting if platform.now() > words.deadline() => self.follow(words.roll_back(self.index), platform),
            State::Waiting => self.follow(words.verdict(), platform),
            State::Over(act) => act,
        }
    }

    fn follow(&mut self, verdict: Verdict, platform: &impl Platform) -> Act {
        let (state, act) = match verdict {
            Verdict::Open => (State::Waiting, Act::Pause),
            Verdict::Committed => {
                platform.stamp(Stamp::Committed);
                (State::Over(Act::TakeOver), Act::TakeOver)
            }
            Verdict::RolledBack => (State::Over(Act::GoBack), Act::GoBack),
        };
        self.state = state;
        act
    }
}
