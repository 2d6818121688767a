// SPDX-License-Identifier: MIT OR Apache-2.0
//! A woken CPU's clock: compared with its parent's or the boot CPU's, and corrected where it can be.

use super::{Follower, Next, Step};
use crate::cell::{ClockSync, SyncOutcome};
use crate::hardware::Station;
use crate::relatives::wake_relatives;
use crate::state::State;
use crate::tsc::{Decision, Estimate, Measurement, Patience, Progress, decide};

impl Follower<'_> {
    pub(super) fn begin_sync(&mut self, since: Option<u64>, station: &mut impl Station) -> Next {
        let is_same_package = self.crew.is_in_boot_package(self.index);
        if decide(&self.crew.plan().sync, is_same_package, station.tsc_adjust()) == Decision::Skip {
            return self.conclude(SyncOutcome::Skipped, 0, 0, station);
        }
        let now = station.now();
        let since = since.unwrap_or(now);
        let limit = self.crew.plan().limits.answer;
        match self.parent_answers() {
            None if now.wrapping_sub(since) <= limit => {
                self.step = Step::AwaitSync { since: Some(since) };
                return Next::Sleep { until: since.wrapping_add(limit) };
            }
            Some(true) => self.ask(self.parent(), None, station),
            _ => self.ask(0, None, station),
        }
        Next::Again
    }

    fn parent(&self) -> u32 {
        if self.crew.stays_to_answer() { self.crew.tree().parent(self.index) } else { 0 }
    }

    /// Returns whether this CPU's parent answers questions; `None` while it may do so later.
    fn parent_answers(&self) -> Option<bool> {
        match self.crew.state(self.parent()) {
            _ if self.parent() == 0 => Some(true),
            State::TscSynchronised => Some(true),
            // Where each is kicked by name, all have been before the first wakes: this one is not wanted.
            State::Offline if !self.crew.plan().is_broadcast() && !self.crew.plan().is_relayed() => Some(false),
            State::Offline | State::Kicked | State::Alive | State::Initialised => None,
            State::Online | State::Parked | State::Dead(_) => Some(false),
        }
    }

    /// Asks for the time. After a correction the partner still polls, and is not called.
    fn ask(&mut self, responder: u32, corrected: Option<i64>, station: &mut impl Station) {
        let rounds = self.crew.plan().sync.rounds();
        let measurement =
            Measurement::begin(&self.cell.exchange, responder, rounds, corrected.is_some(), station.now());
        if corrected.is_none() {
            self.call(responder, station);
        }
        self.step = Step::Measuring { measurement, corrected };
    }

    /// Makes a partner check for this question that may be asleep, or serving others.
    fn call(&self, responder: u32, station: &mut impl Station) {
        if responder == 0 {
            self.crew.request_answer(self.index);
        }
        self.crew.rouse(responder, station);
    }

    pub(super) fn measure(
        &mut self,
        mut measurement: Measurement,
        corrected: Option<i64>,
        station: &mut impl Station,
    ) -> Next {
        let limits = &self.crew.plan().limits;
        let patience = Patience { answer: limits.answer, first: limits.turn, spell: limits.spell, tight: limits.tight };
        let progress = measurement.poll(&self.cell.exchange, patience, || station.now());
        let is_waiting = matches!(progress, Progress::Pending | Progress::Asleep { .. });
        let is_abandoned = progress == Progress::Unanswered || (is_waiting && self.is_left_by(measurement.responder()));
        if is_abandoned && measurement.responder() != 0 && measurement.redirect(&self.cell.exchange, 0, station.now()) {
            self.call(0, station);
            self.step = Step::Measuring { measurement, corrected };
            return Next::Again;
        }
        self.step = Step::Measuring { measurement, corrected };
        match progress {
            Progress::Done(estimate) => self.judge(estimate, measurement.responder(), corrected, station),
            Progress::Pending => Next::Again,
            Progress::Asleep { until, must_call } => {
                if must_call {
                    self.call(measurement.responder(), station);
                }
                Next::Sleep { until }
            }
            Progress::Unanswered => self.conclude(SyncOutcome::Unmeasured, corrected.unwrap_or(0), 0, station),
        }
    }

    /// Returns whether the CPU that was asked does not answer any more.
    fn is_left_by(&self, responder: u32) -> bool {
        responder != 0 && self.parent_answers() == Some(false)
    }

    /// Accepts the estimate, or corrects the clock and measures again, or reports the difference.
    fn judge(&mut self, found: Estimate, responder: u32, corrected: Option<i64>, station: &mut impl Station) -> Next {
        match (corrected, station.tsc_adjust()) {
            (None, _) if found.is_agreement() => self.conclude(SyncOutcome::Agrees, 0, found.error, station),
            (None, Some(adjust)) => {
                station.set_tsc_adjust(adjust.wrapping_add_signed(found.offset));
                self.ask(responder, Some(found.offset), station);
                Next::Again
            }
            (None, None) => self.conclude(SyncOutcome::Differs, found.offset, found.error, station),
            (Some(skew), _) if found.is_agreement() => {
                self.conclude(SyncOutcome::Corrected, skew, found.error, station)
            }
            (Some(skew), _) => {
                // The counter did move by the value written; the remaining difference is reported.
                self.cell.shift_early_stamps(skew);
                self.conclude(SyncOutcome::Differs, found.offset, found.error, station)
            }
        }
    }

    fn conclude(&mut self, outcome: SyncOutcome, skew: i64, error: u64, station: &mut impl Station) -> Next {
        self.cell.set_sync(ClockSync { outcome, skew, error });
        self.cell.shift_early_stamps(skew);
        if outcome == SyncOutcome::Differs {
            self.clock_offset = skew;
        }
        self.step = Step::AwaitOnline;
        let next = self.advance(State::Initialised, State::TscSynchronised, station);
        wake_relatives(&self.crew, self.index, station);
        next
    }
}
