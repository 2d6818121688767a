// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waking: when an entity that wants to run takes the CPU from the one that has it.

use super::{RunQueue, Wakeup};
use crate::entity::State;
use crate::pace::Ticks;

impl<const N: usize> RunQueue<N> {
    /// Wakes a blocked entity: it wants to run.
    pub fn wake(&mut self, slot: usize, now: Ticks) -> Wakeup {
        if !self.make_runnable(slot, now) {
            return Wakeup::Waits;
        }
        let makes_way = self.is_due(slot);
        self.preempt |= makes_way;
        if makes_way { Wakeup::PickNow } else { self.await_turn() }
    }

    /// Wakes a blocked entity that the running one has something for: it may soon have more. So the running one keeps
    /// the CPU until its slice is over, it blocks, or [`make_way`](Self::make_way) is called.
    pub fn wake_behind(&mut self, slot: usize, now: Ticks) -> Wakeup {
        match self.make_runnable(slot, now) {
            true => self.await_turn(),
            false => Wakeup::Waits,
        }
    }

    /// The entity that waits with the least virtual time takes the CPU as if it woke now. Pick next.
    pub fn make_way(&mut self, now: Ticks) {
        self.charge_running(now);
        self.preempt |= self.running.is_some() && self.least(self.waiting).is_some_and(|slot| self.is_due(slot));
    }

    /// False if it was not blocked.
    fn make_runnable(&mut self, slot: usize, now: Ticks) -> bool {
        self.charge_running(now);
        if self.state(slot) != Some(State::Blocked) {
            return false;
        }
        let (base, now, pace) = (self.base, self.now, self.pace);
        let Some((entity, virtual_time)) = self.entity_mut(slot) else { return false };
        entity.book_blocked(now);
        // Of the time it slept while the others' virtual time went on to the base, only so much is still owed to it.
        // The time that it has run too much it still owes.
        *virtual_time = base.saturating_sub(entity.virtual_span(pace.sleeper_credit)).max(*virtual_time);
        self.total_weight += u32::from(entity.weight.get());
        self.waiting |= 1 << slot;
        true
    }

    /// Returns whether it could run for the margin before the running one is due again.
    fn is_due(&self, slot: usize) -> bool {
        let Some(runner) = self.running.and_then(|running| self.virtual_times.get(running)) else { return false };
        let (Some(entity), Some(virtual_time)) = (self.entity(slot), self.virtual_times.get(slot)) else {
            return false;
        };
        virtual_time.saturating_add(entity.virtual_span(self.pace.wake_margin)) < *runner
    }

    /// It waits for its turn: somebody has to give the CPU an end of the slice, or the CPU idles.
    fn await_turn(&self) -> Wakeup {
        if self.running.is_none() || self.slice_end.is_none() { Wakeup::PickNow } else { Wakeup::Waits }
    }
}
