// SPDX-License-Identifier: MIT OR Apache-2.0
//! Choice of the next entity: the part of the queue that every switch goes through.

use super::slots::slots_of;
use super::{Choice, RunQueue};
use crate::entity::{Entity, VirtualTime};
use crate::pace::Ticks;
use crate::weight::Weight;

impl<const N: usize> RunQueue<N> {
    /// Returns the entity that runs from now on; `None`: none wants to. The running entity stays until its slice is
    /// over, unless a sleeper that woke is to have the CPU at once. Not inlined: the same code for every caller.
    #[inline(never)]
    pub fn pick(&mut self, now: Ticks) -> Option<Choice> {
        self.account(now);
        let yielded = core::mem::take(&mut self.yielded);
        if let Some(slot) = self.running {
            if self.keeps_running(slot) {
                return Some(Choice { slot, slice_end: self.slice_end });
            }
            self.waiting |= 1 << slot;
        }
        let others = self.waiting & !yielded;
        let slot = self.least(if others != 0 { others } else { self.waiting })?;
        self.switch_to(slot)
    }

    /// Charges the running entity for the time up to now. Every operation does this by itself; call it to read
    /// [`RunQueue::times`] as of now.
    #[inline]
    pub fn account(&mut self, now: Ticks) {
        if now <= self.now {
            return;
        }
        self.now = now;
        if let Some((entity, virtual_time)) = self.running.and_then(|slot| self.entity_mut(slot)) {
            // Running adds up to less than the clock holds, but a yield adds the time that others have run.
            *virtual_time = virtual_time.saturating_add(entity.book_running(now));
        }
    }

    /// Counts the time since the queue last learned the time as stolen from the running entity: another user had the
    /// CPU. The entity is not charged.
    pub fn lose(&mut self, now: Ticks) {
        if now <= self.now {
            return;
        }
        self.now = now;
        if let Some((entity, _)) = self.running.and_then(|slot| self.entity_mut(slot)) {
            entity.book_stolen(now);
        }
    }

    /// Charges the running entity and moves the base to where those awake are: before one of them goes or another
    /// comes.
    pub(super) fn charge_running(&mut self, now: Ticks) {
        self.account(now);
        let awake = self.waiting | self.running.map_or(0, |slot| 1 << slot);
        if let Some(least) = self.least(awake).and_then(|slot| self.virtual_times.get(slot)) {
            self.base = self.base.max(*least);
        }
    }

    /// Returns whether the running entity keeps the CPU; gives its slice an end when others have come, and none when
    /// they have gone.
    #[inline]
    fn keeps_running(&mut self, slot: usize) -> bool {
        if self.waiting == 0 {
            (self.slice_end, self.preempt) = (None, false);
            return true;
        }
        match self.slice_end {
            _ if self.preempt => return false,
            Some(end) => return self.now < end,
            None => self.slice_end = self.entity(slot).map(|entity| self.end_of_slice(entity.weight)),
        }
        true
    }

    #[inline]
    fn switch_to(&mut self, slot: usize) -> Option<Choice> {
        let now = self.now;
        let (entity, _) = self.entity_mut(slot)?;
        entity.book_stolen(now);
        let weight = entity.weight;
        self.waiting &= !(1 << slot);
        self.running = Some(slot);
        self.preempt = false;
        self.slice_end = (self.waiting != 0).then(|| self.end_of_slice(weight));
        Some(Choice { slot, slice_end: self.slice_end })
    }

    #[inline]
    fn end_of_slice(&self, weight: Weight) -> Ticks {
        Ticks(self.now.0.saturating_add(self.pace.slice(weight, self.total_weight)))
    }

    pub(super) fn stop_running(&mut self) {
        self.running = None;
        self.slice_end = None;
        self.preempt = false;
    }

    /// Returns the entity of these with the least virtual time; among equals, the one in the lowest slot: it is behind
    /// as soon as it has run.
    #[inline]
    pub(super) fn least(&self, slots: u64) -> Option<usize> {
        let mut slots = slots_of(slots);
        let mut least = slots.next()?;
        let mut least_time = *self.virtual_times.get(least)?;
        for slot in slots {
            let Some(&time) = self.virtual_times.get(slot) else { break };
            if time < least_time {
                (least, least_time) = (slot, time);
            }
        }
        Some(least)
    }

    #[inline]
    pub(super) fn entity(&self, slot: usize) -> Option<&Entity> {
        self.entities.get(slot)?.as_ref()
    }

    #[inline]
    pub(super) fn entity_mut(&mut self, slot: usize) -> Option<(&mut Entity, &mut VirtualTime)> {
        self.entities.get_mut(slot)?.as_mut().zip(self.virtual_times.get_mut(slot))
    }
}
