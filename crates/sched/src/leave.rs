// SPDX-License-Identifier: MIT OR Apache-2.0
//! A CPU's way offline: the operator's side gives up waiting at the moment at which the CPU may begin to go, and one of
//! them wins.
//!
//! ```text
//!          ask            begin            (halts)
//! Stays ────────► Asked ─────────► Going ──────────► its state is offline; `reset`
//!   ▲               │ │ refuse       │ refuse
//!   │   withdraw    │ ▼              ▼
//!   └───────────────┘ Refused(why) ◄─┘
//!   └──── reset ──────────┘
//! ```

use crate::pace::Ticks;
use crate::sync::{AtomicU32, Ordering, const_new};

const STAYS: u32 = 0;
const ASKED: u32 = 1;
const GOING: u32 = 2;
const NO_ROOM: u32 = 3;

/// A CPU's progress on its way offline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaving {
    /// It has not been asked to go.
    Stays,
    /// It is to go, and has not begun to.
    Asked,
    /// It moves its work to other CPUs; it is not to be stopped any more.
    Going,
    /// It cannot: the others have no room for what it holds.
    NoRoom,
}

/// One CPU's order to leave. The operator's side is one at a time; so is the CPU.
#[derive(Debug)]
pub struct LeaveOrder(AtomicU32);

impl LeaveOrder {
    const_new! {
        /// It stays.
        () {
            Self(AtomicU32::new(STAYS))
        }
    }

    /// Returns how far it has come.
    #[inline]
    pub fn progress(&self) -> Leaving {
        match self.0.load(Ordering::Acquire) {
            STAYS => Leaving::Stays,
            ASKED => Leaving::Asked,
            GOING => Leaving::Going,
            _ => Leaving::NoRoom,
        }
    }

    /// Asks it to go, for the operator. Returns `false` if it was asked before, and that has not ended.
    pub fn ask(&self) -> bool {
        self.step(STAYS, ASKED)
    }

    /// Withdraws the order: the operator has waited long enough. Returns `false` if the CPU has begun to go, or has
    /// reported why not.
    pub fn withdraw(&self) -> bool {
        self.step(ASKED, STAYS)
    }

    /// Begins the CPU's going. Returns `false` if it need not go any more.
    pub fn begin(&self) -> bool {
        self.step(ASKED, GOING)
    }

    /// Reports that the CPU cannot go; it takes work as before.
    pub fn refuse(&self) {
        let _ = self.step(ASKED, NO_ROOM) || self.step(GOING, NO_ROOM);
    }

    /// Clears the order: the operator has learnt how it ended, or the CPU comes online again.
    pub fn reset(&self) {
        self.0.store(STAYS, Ordering::Release);
    }

    fn step(&self, from: u32, to: u32) -> bool {
        self.0.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

impl Default for LeaveOrder {
    fn default() -> Self {
        Self::new()
    }
}

/// The operator's patience with one order: first until the CPU begins to go, then once more until it has gone.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    ticks: u64,
    deadline: Ticks,
    has_seen_it_going: bool,
}

/// The operator's view of the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing yet: check again when something happens, at [`Patience::deadline`] at the latest.
    Wait,
    /// The CPU is offline.
    Left,
    /// It stays: the others have no room for what it holds.
    NoRoom,
    /// It stays: it did not begin to go in time.
    Late,
    /// It has begun to go, and has not gone in time.
    Stuck,
}

impl Patience {
    /// Of so many ticks, from now on.
    pub const fn new(ticks: u64, now: Ticks) -> Self {
        Self { ticks, deadline: Ticks(now.0.saturating_add(ticks)), has_seen_it_going: false }
    }

    /// Returns when to check again at the latest.
    pub const fn deadline(&self) -> Ticks {
        self.deadline
    }

    /// Checks the progress of the order. Any answer but [`Verdict::Wait`] ends it: the CPU may be asked again, unless
    /// it is stuck.
    pub fn judge(&mut self, order: &LeaveOrder, is_offline: bool, now: Ticks) -> Verdict {
        if is_offline {
            return Verdict::Left;
        }
        if order.progress() == Leaving::NoRoom {
            order.reset();
            return Verdict::NoRoom;
        }
        if now < self.deadline {
            return Verdict::Wait;
        }
        if order.withdraw() {
            return Verdict::Late;
        }
        if self.has_seen_it_going {
            return Verdict::Stuck;
        }
        *self = Self { has_seen_it_going: true, ..Self::new(self.ticks, now) };
        Verdict::Wait
    }
}
