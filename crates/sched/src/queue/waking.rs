// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waking: when an entity that wants to run takes the CPU from the one that has it.

use super::{RunQueue, Wakeup};
use crate::entity::State;
use crate::pace::Ticks;

impl<const N: usize> RunQueue<N> {
    /// Wakes a blocked entity: it wants to run.
    pub fn wake(&mut self, slot: usize, now: Ticks) -> Wakeup {
        if !self.make_runnable(slot, now, self.pace.sleeper_credit) {
            return Wakeup::Waits;
        }
        let makes_way = self.is_ahead(slot, self.pace.wake_margin);
        self.preempt |= makes_way;
        if makes_way { Wakeup::PickNow } else { self.await_turn() }
    }

    /// Wakes a blocked entity that the running one has something for: it may soon have more. So the running one keeps
    /// the CPU until its slice is over, it blocks, or [`make_way`](Self::make_way) is called. For its sleep it is owed
    /// nothing: another sleeper that wakes before it has its turn goes first.
    pub fn wake_behind(&mut self, slot: usize, now: Ticks) -> Wakeup {
        match self.make_runnable(slot, now, 0) {
            true => self.await_turn(),
            false => Wakeup::Waits,
        }
    }

    /// The running entity makes way for one that waits with less virtual time. Pick next.
    pub fn make_way(&mut self, now: Ticks) {
        self.charge_running(now);
        self.preempt |= self.least(self.waiting).is_some_and(|slot| self.is_ahead(slot, 0));
    }

    /// False if it was not blocked. It keeps so much of the time that it slept, in ticks, as its credit.
    fn make_runnable(&mut self, slot: usize, now: Ticks, credit: u64) -> bool {
        self.charge_running(now);
        if self.state(slot) != Some(State::Blocked) {
            return false;
        }
        let (base, now) = (self.base, self.now);
        let Some((entity, virtual_time)) = self.entity_mut(slot) else { return false };
        entity.book_blocked(now);
        // Of the time it slept while the others' virtual time went on to the base, only so much is still owed to it.
        // The time that it has run too much it still owes.
        *virtual_time = base.saturating_sub(entity.virtual_span(credit)).max(*virtual_time);
        self.total_weight += u32::from(entity.weight.get());
        self.waiting |= 1 << slot;
        true
    }

    /// Returns whether it could run for more than `margin` before the running one is due again.
    fn is_ahead(&self, slot: usize, margin: u64) -> bool {
        let Some(runner) = self.running.and_then(|running| self.virtual_times.get(running)) else { return false };
        let (Some(entity), Some(virtual_time)) = (self.entity(slot), self.virtual_times.get(slot)) else {
            return false;
        };
        virtual_time.saturating_add(entity.virtual_span(margin)) < *runner
    }

    /// It waits for its turn: the slice of the running one has an end, or gets one with the next choice.
    fn await_turn(&self) -> Wakeup {
        if self.running.is_none() || self.slice_end.is_none() { Wakeup::PickNow } else { Wakeup::Waits }
    }
}
