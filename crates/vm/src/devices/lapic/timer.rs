// SPDX-License-Identifier: MIT OR Apache-2.0
//! The timer (Intel SDM vol. 3, section 11.5.4).
//!
//! Nothing counts: a running timer is the TSC at which it is due, and the current count is computed when it is read. In
//! TSC-deadline mode that number is the guest's own. A masked timer runs on without interrupting.

use super::local_vector::LocalVector;
use super::registers::DIVIDE_MASK;
use super::timer_mode::TimerMode;
use super::{Acceptance, Action, Lapic};
use crate::devices::GuestTsc;

impl Lapic {
    /// Returns when the timer is next due to interrupt; `None` while it is stopped or masked. A guest may choose any
    /// period, so the CPU that arms a real timer by this keeps a least distance.
    #[inline]
    pub fn timer_deadline(&self) -> Option<GuestTsc> {
        let is_wanted = self.state.timer_deadline != 0 && !self.local_vector(LocalVector::Timer).masked();
        is_wanted.then_some(GuestTsc(self.state.timer_deadline))
    }

    /// Checks whether the timer is due, and if so requests its interrupt and, in periodic mode, starts the next period
    /// where the last one ended: periods that were not checked are skipped, in one step. Returns whether it has
    /// requested an interrupt.
    #[inline]
    pub fn expire_timer(&mut self, now: GuestTsc) -> bool {
        let deadline = self.state.timer_deadline;
        if deadline == 0 || now.0 < deadline {
            return false;
        }
        self.state.timer_deadline = self.deadline_after(deadline, now.0);
        let vector = self.local_vector(LocalVector::Timer).unmasked_vector();
        vector.is_some_and(|vector| self.accept_vector(vector, false) == Acceptance::Requested)
    }

    /// IA32_TSC_DEADLINE: zero outside its mode, and once it has passed.
    pub fn tsc_deadline(&self, now: GuestTsc) -> u64 {
        let is_armed = self.timer_mode() == TimerMode::TscDeadline && self.state.timer_deadline > now.0;
        if is_armed { self.state.timer_deadline } else { 0 }
    }

    /// Writes IA32_TSC_DEADLINE: zero stops the timer; outside its mode nothing happens.
    #[inline]
    pub fn set_tsc_deadline(&mut self, value: u64, now: GuestTsc) -> Action {
        if self.timer_mode() != TimerMode::TscDeadline {
            return Action::None;
        }
        self.expire_timer(now);
        self.state.timer_deadline = value;
        Action::TimerChanged
    }

    /// The guest sets its TSC from `before` to `after`. The rest of a count goes on undisturbed; a TSC deadline stays
    /// the number that it is.
    pub fn follow_tsc(&mut self, before: GuestTsc, after: GuestTsc) {
        self.expire_timer(before);
        if self.timer_mode().counts() && self.state.timer_deadline != 0 {
            let left = self.state.timer_deadline.saturating_sub(before.0);
            self.state.timer_deadline = after.0.saturating_add(left);
        }
    }

    pub(super) fn current_count(&self, now: GuestTsc) -> u32 {
        let (mode, deadline) = (self.timer_mode(), self.state.timer_deadline);
        if !mode.counts() || deadline == 0 {
            return 0;
        }
        let due = if now.0 < deadline { deadline } else { self.deadline_after(deadline, now.0) };
        let ticks = due.saturating_sub(now.0);
        // Rounded up: just started, the count is the initial one; it is zero only when the timer is due.
        let count = ticks.div_ceil(1 << self.divider_shift());
        count.min(u64::from(self.state.initial_count)) as u32
    }

    /// Starts the timer, or stops it with zero; ignored outside the counting modes.
    pub(super) fn set_initial_count(&mut self, count: u32, now: GuestTsc) {
        if self.timer_mode().counts() {
            self.expire_timer(now);
            self.state.initial_count = count;
            self.count_down(count, now);
        }
    }

    /// Changes the divider; the rest of a count goes on at the new pace.
    pub(super) fn set_divide(&mut self, value: u32, now: GuestTsc) {
        self.expire_timer(now);
        let left = self.current_count(now);
        self.state.divide = value & DIVIDE_MASK;
        if self.timer_mode().counts() {
            self.count_down(left, now);
        }
    }

    /// Writes the timer's local vector. A change between counting and deadline stops the timer.
    pub(super) fn set_timer_vector(&mut self, value: u32, now: GuestTsc) {
        self.expire_timer(now);
        let before = self.timer_mode();
        self.set_local_vector(LocalVector::Timer, value);
        let after = self.timer_mode();
        if before != after && !(before.counts() && after.counts()) {
            self.state.timer_deadline = 0;
        }
    }

    fn timer_mode(&self) -> TimerMode {
        TimerMode::from_bits(self.local_vector(LocalVector::Timer).timer_mode())
    }

    fn count_down(&mut self, count: u32, now: GuestTsc) {
        let ticks = u64::from(count) << self.divider_shift();
        self.state.timer_deadline = if count == 0 { 0 } else { now.0.saturating_add(ticks) };
    }

    /// The deadline that follows a deadline that has passed; zero for none.
    fn deadline_after(&self, deadline: u64, now: u64) -> u64 {
        let period = u64::from(self.state.initial_count) << self.divider_shift();
        if self.timer_mode() != TimerMode::Periodic || period == 0 {
            return 0;
        }
        let late = now.saturating_sub(deadline);
        let skipped = if late < period { 0 } else { late - late % period };
        deadline.saturating_add(skipped).saturating_add(period)
    }

    /// The divider's bits 3, 1 and 0 count powers of two from 2 to 128, and then 1.
    const fn divider_shift(&self) -> u32 {
        let bits = self.state.divide;
        ((bits >> 1 & 0b100 | bits & 0b11) + 1) & 0b111
    }
}
