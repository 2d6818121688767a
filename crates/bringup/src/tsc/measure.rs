// SPDX-License-Identifier: MIT OR Apache-2.0
//! The asker's side: a bounded number of questions, each with a limit.

use super::estimate::Estimate;
use super::exchange::Exchange;

/// Questions per measurement. The quickest of sixteen is rarely delayed by anything but the transfer of the line.
pub const ROUNDS: u32 = 16;
/// The same where CPUs share real ones.
pub const SHARED_ROUNDS: u32 = 6;

/// Limits of one exchange.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// For one answer; longer than this and the CPU that was asked is gone.
    pub answer: u64,
    /// For the first one, which may have to wait for its turn.
    pub first: u64,
    /// Spinning for an answer.
    pub spell: u64,
    /// The error at which no more is asked.
    pub tight: u64,
}

/// Progress of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The answer comes at once: poll again.
    Pending,
    /// The answer may take a while: sleep until it is there, or until then.
    Asleep {
        /// By the asker's clock.
        until: u64,
        /// The CPU that is asked may not know of this question yet: call it.
        must_call: bool,
    },
    /// All answers are there.
    Done(Estimate),
    /// An answer took longer than its limit: the CPU that was asked is gone.
    Unanswered,
}

/// A measurement under way.
#[derive(Clone, Copy, Debug)]
pub struct Measurement {
    responder: u32,
    asked_at: u64,
    rounds: u32,
    rounds_left: u32,
    best: Option<Estimate>,
    /// The CPU that is asked executes, as far as is known, and polls.
    is_attended: bool,
    /// The CPU that is asked has been called because of this question.
    is_called: bool,
    is_first: bool,
}

impl Measurement {
    /// Asks CPU `responder` the first of `rounds` questions. `is_attended`: that CPU has just answered another
    /// question; else the caller calls it.
    pub fn begin(exchange: &Exchange, responder: u32, rounds: u32, is_attended: bool, now: u64) -> Self {
        exchange.ask(responder);
        Self::first(responder, rounds, is_attended, now)
    }

    fn first(responder: u32, rounds: u32, is_attended: bool, now: u64) -> Self {
        let (is_called, is_first, rounds_left) = (!is_attended, !is_attended, rounds);
        Self { responder, asked_at: now, rounds, rounds_left, best: None, is_attended, is_called, is_first }
    }

    /// The CPU that is asked.
    pub fn responder(&self) -> u32 {
        self.responder
    }

    /// Reads an answer if there is one, and asks again.
    pub fn poll(&mut self, exchange: &Exchange, patience: Patience, mut now: impl FnMut() -> u64) -> Progress {
        let Some(other) = exchange.take() else {
            return self.wait(patience, now());
        };
        let round = Estimate::from_round(self.asked_at, other, now());
        let best = self.best.map_or(round, |best| best.better_of(round));
        self.best = Some(best);
        self.rounds_left = self.rounds_left.saturating_sub(1);
        if self.rounds_left == 0 || best.error <= patience.tight {
            return Progress::Done(best);
        }
        (self.is_attended, self.is_called, self.is_first) = (true, false, false);
        self.asked_at = now();
        exchange.ask(self.responder);
        Progress::Pending
    }

    fn wait(&mut self, patience: Patience, now: u64) -> Progress {
        let waited = now.wrapping_sub(self.asked_at);
        let limit = if self.is_first && self.responder == 0 { patience.first } else { patience.answer };
        if waited > limit {
            return Progress::Unanswered;
        }
        // For a CPU that did not answer within the spell this one sleeps, until it answers.
        self.is_attended &= waited <= patience.spell;
        if self.is_attended {
            return Progress::Pending;
        }
        let must_call = !core::mem::replace(&mut self.is_called, true);
        Progress::Asleep { until: self.asked_at.wrapping_add(limit), must_call }
    }

    /// Asks another CPU, discarding what the first reported. Returns `false` if the first has begun to answer.
    pub fn redirect(&mut self, exchange: &Exchange, responder: u32, now: u64) -> bool {
        let is_redirected = exchange.redirect(self.responder, responder);
        if is_redirected {
            *self = Self::first(responder, self.rounds, false, now);
        }
        is_redirected
    }
}
