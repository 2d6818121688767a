// SPDX-License-Identifier: MIT OR Apache-2.0
//! Question and answer through one cache line.
//!
//! ```text
//! asker: Idle ──ask──▶ Asked(responder) ──────────────────▶ Answered ──take──▶ Idle
//!                        │   ▲        responder: Claimed ────▲
//!                        └───┘ redirect (only before the claim)
//! ```

use crate::sync::{AtomicU32, AtomicU64, Ordering, const_new};

const IDLE: u32 = 0;
const ASKED: u32 = 1;
const CLAIMED: u32 = 2;
const ANSWERED: u32 = 3;

const fn asked(responder: u32) -> u32 {
    responder << 2 | ASKED
}

/// A place for one question at a time. The asker owns it; at most one other answers.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Exchange {
    turn: AtomicU32,
    answer: AtomicU64,
}

impl Exchange {
    const_new! {
        /// No question.
        {
            Self { turn: AtomicU32::new(IDLE), answer: AtomicU64::new(0) }
        }
    }

    /// Asks CPU `responder` for its time.
    pub fn ask(&self, responder: u32) {
        self.turn.store(asked(responder), Ordering::Release);
    }

    /// Asks another instead, unless the first has begun to answer.
    pub fn redirect(&self, from: u32, to: u32) -> bool {
        self.turn.compare_exchange(asked(from), asked(to), Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Answers if this CPU is asked. The clock is read after the question was seen.
    pub fn answer(&self, me: u32, now: impl FnOnce() -> u64) -> bool {
        if self.turn.load(Ordering::Acquire) != asked(me) {
            return false;
        }
        let claimed = self.turn.compare_exchange(asked(me), CLAIMED, Ordering::AcqRel, Ordering::Acquire).is_ok();
        if claimed {
            self.answer.store(now(), Ordering::Relaxed);
            self.turn.store(ANSWERED, Ordering::Release);
        }
        claimed
    }

    /// Returns the answer, once it is there.
    pub fn take(&self) -> Option<u64> {
        if self.turn.load(Ordering::Acquire) != ANSWERED {
            return None;
        }
        let answer = self.answer.load(Ordering::Relaxed);
        self.turn.store(IDLE, Ordering::Relaxed);
        Some(answer)
    }
}

impl Default for Exchange {
    fn default() -> Self {
        Self::new()
    }
}
