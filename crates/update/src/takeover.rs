// SPDX-License-Identifier: MIT OR Apache-2.0
//! The words by which all CPUs switch to a new image, or all stay: in a page that both images see.
//!
//! ```text
//! old image   stop ─ all have ─▶ save ─ all have ─▶ go
//! new image                                          restore ─ all have ─▶ Committed: go on there
//! the CPU that waits too long, or fails, anywhere ─▶ RolledBack: all stay, or go back
//! ```
//!
//! One word decides, once: the CPU that restores last commits, the CPU that loses patience or fails rolls back, and one
//! of them wins. A CPU acts on what the word states, never on what it tried to make it state. So none goes on in the
//! new image while another goes back, in any order in which they read it.
//!
//! Two images, perhaps of different versions, use the same words: [`crate::trial::VERSION`] counts for them, too.

use crate::sync::{AtomicU32, AtomicU64, Ordering, const_new};

/// The decision about the takeover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing yet.
    Open,
    /// Every CPU goes on in the new image.
    Committed,
    /// Every CPU goes on in the old one.
    RolledBack,
}

/// The way of a CPU of the old image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// It waits: not all are as far.
    Wait,
    /// To the next step.
    Go,
    /// It stays in the old image.
    Stay,
}

const OPEN: u32 = 0;
/// The word at [`Takeover::VERDICT_OFFSET`] when every CPU goes on in the new image.
pub const COMMITTED: u32 = 1;
const ROLLED_BACK: u32 = 2;

/// The words.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Takeover {
    verdict: AtomicU32,
    members: AtomicU32,
    stopped: AtomicU32,
    saved: AtomicU32,
    restored: AtomicU32,
    back: AtomicU32,
    /// Number of the CPU that rolled back, plus one.
    blamed: AtomicU32,
    /// End of the CPUs' patience, in ticks.
    deadline: AtomicU64,
}

impl Takeover {
    /// Offset in bytes of the word with the decision, for code that cannot call this crate.
    pub const VERDICT_OFFSET: usize = core::mem::offset_of!(Self, verdict);

    const_new! {
        /// One without members.
        {
            Self {
                verdict: AtomicU32::new(ROLLED_BACK),
                members: AtomicU32::new(0),
                stopped: AtomicU32::new(0),
                saved: AtomicU32::new(0),
                restored: AtomicU32::new(0),
                back: AtomicU32::new(0),
                blamed: AtomicU32::new(0),
                deadline: AtomicU64::new(0),
            }
        }
    }

    /// Begins a takeover of `members` CPUs, none of which waits beyond `deadline`. Called before any of them takes
    /// part.
    pub fn begin(&self, members: u32, deadline: u64) {
        self.members.store(members, Ordering::Relaxed);
        self.deadline.store(deadline, Ordering::Relaxed);
        for count in [&self.stopped, &self.saved, &self.restored, &self.back, &self.blamed] {
            count.store(0, Ordering::Relaxed);
        }
        self.verdict.store(OPEN, Ordering::Release);
    }

    /// Returns how many take part.
    pub fn members(&self) -> u32 {
        self.members.load(Ordering::Relaxed)
    }

    /// Returns when patience ends, in ticks.
    pub fn deadline(&self) -> u64 {
        self.deadline.load(Ordering::Relaxed)
    }

    /// Notes that a CPU has left its guests: from here on it changes nothing of theirs.
    pub fn has_stopped(&self) {
        self.stopped.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns whether a CPU that has stopped may save its guests: once all have.
    pub fn may_save(&self) -> Way {
        self.way(&self.stopped)
    }

    /// Notes that a CPU has saved its guests. The CPU that goes sees all that it wrote before.
    pub fn has_saved(&self) {
        self.saved.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns whether a CPU that has saved its guests may go to the new image: once all have.
    pub fn may_go(&self) -> Way {
        self.way(&self.saved)
    }

    fn way(&self, reached: &AtomicU32) -> Way {
        let are_all = reached.load(Ordering::Acquire) >= self.members();
        match self.verdict() {
            Verdict::RolledBack => Way::Stay,
            // Committed without the one that asks it cannot be.
            Verdict::Open | Verdict::Committed if are_all => Way::Go,
            Verdict::Open | Verdict::Committed => Way::Wait,
        }
    }

    /// Notes that a CPU has restored its guests in the new image. The last one to do so commits; the verdict then is
    /// returned.
    pub fn has_restored(&self) -> Verdict {
        if self.restored.fetch_add(1, Ordering::AcqRel) + 1 == self.members() {
            self.decide(COMMITTED)
        } else {
            self.verdict()
        }
    }

    /// Rolls back for a CPU that has failed or lost patience. Returns the verdict that holds then.
    pub fn roll_back(&self, cpu: u32) -> Verdict {
        let held = self.decide(ROLLED_BACK);
        if held == Verdict::RolledBack {
            // The first counts.
            let _ = self.blamed.compare_exchange(0, cpu + 1, Ordering::Relaxed, Ordering::Relaxed);
        }
        held
    }

    /// Returns what has been decided.
    pub fn verdict(&self) -> Verdict {
        match self.verdict.load(Ordering::Acquire) {
            OPEN => Verdict::Open,
            COMMITTED => Verdict::Committed,
            _ => Verdict::RolledBack,
        }
    }

    /// Notes that a CPU is back in the old image, or has never left it. Returns whether it is the first.
    pub fn is_back(&self) -> bool {
        self.back.fetch_add(1, Ordering::AcqRel) == 0
    }

    /// Returns whether all are back.
    pub fn are_all_back(&self) -> bool {
        self.back.load(Ordering::Acquire) >= self.members()
    }

    /// Returns the CPU that rolled back, if one did.
    pub fn blamed(&self) -> Option<u32> {
        self.blamed.load(Ordering::Relaxed).checked_sub(1)
    }

    fn decide(&self, verdict: u32) -> Verdict {
        let _ = self.verdict.compare_exchange(OPEN, verdict, Ordering::AcqRel, Ordering::Acquire);
        self.verdict()
    }
}

impl Default for Takeover {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
#[path = "takeover_tests.rs"]
mod tests;
