// SPDX-License-Identifier: MIT OR Apache-2.0
//! The new image's preparation: it runs on the leader's CPU for a slice at a time, and guests run in between.
//!
//! ```text
//! drafts missing ─ all saved ─▶ slice ⇄ pause ─▶ prepared
//!      │ late, failed, outdated   │ hangs masked, too long in all, gives up
//!      └──────────────────────────┴──▶ failed: guests have noticed nothing
//! ```
//!
//! Before the first slice each CPU saves its guests once while they run (a draft): what the new image rehearses with.

use crate::platform::Clock;

/// The longest slice: guests on this CPU wait for this time.
pub const SLICE_US: u64 = 250;
/// Shortest time in µs for which guests run before the next slice. After a slice that could not be ended in time they
/// run as long as it took, up to [`LONGEST_PAUSE_US`].
const PAUSE_US: u64 = 250;
/// Longest time in µs for which they do, here and after a step of the [finish](crate::finish).
pub const LONGEST_PAUSE_US: u64 = 20_000;
/// All slices together: many times what they take, in an emulator too.
pub const LIMIT_US: u64 = 10_000_000;
/// Longest time in µs for all CPUs to save their drafts. On a crowded emulator one may wait for a core.
const DRAFTS_LIMIT_US: u64 = 2_000_000;
/// An image that the watchdog finds so often in a row with interrupts masked hangs. Once is no proof: the emulator may
/// have kept the CPU away while interrupts were masked for a moment.
const MOST_WATCHDOGS: u32 = 2;

/// The state of the drafts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drafts {
    /// A CPU has not saved yet.
    Missing,
    /// A CPU could not.
    Failed,
    /// All have, but a vCPU is not among them: its guest has changed.
    Outdated,
    /// All have.
    Saved,
}

/// The caller's action in this turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Nothing.
    Wait,
    /// Lends the CPU for a slice, then calls [`Preparation::end_slice`].
    Slice,
    /// Gives the update up.
    Failed(Failure),
}

/// The end of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SliceEnd {
    /// An interrupt of the old image.
    Interrupt,
    /// The watchdog's NMI, while the new image had interrupts masked or not.
    Watchdog {
        /// It had.
        was_masked: bool,
    },
    /// The new image has prepared everything.
    Prepared,
    /// It gives up, has raised an exception, or does not follow the protocol.
    Failed,
}

/// The preparation's state after a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// There is more to do.
    UnderWay,
    /// All is prepared.
    Prepared,
    /// It has failed.
    Failed(Failure),
}

/// The reason why there is no update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A CPU does not save its guests.
    DraftsLate,
    /// A CPU could not.
    DraftFailed,
    /// A guest has changed.
    GuestsChanged,
    /// The new image hangs with interrupts masked.
    Hangs,
    /// It was not prepared in all the time that it had.
    TooLong,
    /// It has ended its time by itself.
    Ended,
}

/// A preparation.
#[derive(Debug)]
pub struct Preparation {
    /// Until when drafts may be missing; `None` once they are not.
    drafts_until: Option<u64>,
    /// Time from the begin of a slice until the watchdog goes off.
    watchdog_us: u64,
    spent: u64,
    slices: u32,
    watchdogs: u32,
    next_turn: u64,
}

impl Preparation {
    /// Begins once CPUs have been ordered to save their drafts. `watchdog_us` of a slice later the watchdog ends it.
    #[must_use]
    pub fn begin(watchdog_us: u64, clock: &impl Clock) -> Self {
        let drafts_until = Some(clock.now() + clock.ticks(DRAFTS_LIMIT_US));
        Self { drafts_until, watchdog_us, spent: 0, slices: 0, watchdogs: 0, next_turn: 0 }
    }

    /// Returns when the next turn is due.
    #[must_use]
    pub fn alarm(&self) -> u64 {
        self.next_turn
    }

    /// Ticks for which the new image had the CPU.
    #[must_use]
    pub fn spent(&self) -> u64 {
        self.spent
    }

    /// Returns how many slices it had.
    #[must_use]
    pub fn slices(&self) -> u32 {
        self.slices
    }

    /// Returns how long the watchdog leaves the new image alone, in microseconds.
    #[must_use]
    pub fn watchdog_us(&self) -> u64 {
        self.watchdog_us
    }

    /// Returns what is to be done now.
    pub fn turn(&mut self, clock: &impl Clock, drafts: impl FnOnce() -> Drafts) -> Turn {
        let now = clock.now();
        if now < self.next_turn {
            return Turn::Wait;
        }
        let Some(until) = self.drafts_until else { return Turn::Slice };
        match drafts() {
            Drafts::Missing if now > until => Turn::Failed(Failure::DraftsLate),
            Drafts::Missing => {
                self.next_turn = now + clock.ticks(PAUSE_US);
                Turn::Wait
            }
            Drafts::Failed => Turn::Failed(Failure::DraftFailed),
            Drafts::Outdated => Turn::Failed(Failure::GuestsChanged),
            Drafts::Saved => {
                self.drafts_until = None;
                Turn::Slice
            }
        }
    }

    /// Returns whether an NMI that ends a slice is the watchdog's: an earlier one has another cause.
    #[must_use]
    pub fn is_watchdog(&self, began: u64, ended: u64, clock: &impl Clock) -> bool {
        ended - began >= clock.ticks(self.watchdog_us / 2)
    }

    /// Notes the end of a slice, with its begin and end.
    pub fn end_slice(&mut self, began: u64, ended: u64, end: SliceEnd, clock: &impl Clock) -> Progress {
        self.spent += ended - began;
        self.slices += 1;
        self.next_turn = ended + (ended - began).clamp(clock.ticks(PAUSE_US), clock.ticks(LONGEST_PAUSE_US));
        self.watchdogs = if end == (SliceEnd::Watchdog { was_masked: true }) { self.watchdogs + 1 } else { 0 };
        match end {
            SliceEnd::Prepared => Progress::Prepared,
            SliceEnd::Failed => Progress::Failed(Failure::Ended),
            _ if self.watchdogs >= MOST_WATCHDOGS => Progress::Failed(Failure::Hangs),
            _ if self.spent > clock.ticks(LIMIT_US) => Progress::Failed(Failure::TooLong),
            _ => Progress::UnderWay,
        }
    }
}
