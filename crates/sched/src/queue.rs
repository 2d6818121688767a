// SPDX-License-Identifier: MIT OR Apache-2.0
//! One CPU's queue.

mod choosing;
mod slots;
mod waking;

use core::fmt;

use slots::slots_of;

use crate::entity::{Entity, State, Times, VirtualTime};
use crate::pace::{Pace, Ticks};
use crate::weight::Weight;

/// The most slots a queue can have: one bit each.
pub const MOST_SLOTS: usize = 64;

/// One CPU's entities and their states.
///
/// A slot is the caller's small number for an entity. Operations on a slot that holds none change nothing: a wake may
/// come late for an entity that has gone. A `now` before an earlier one is taken for that one.
#[derive(Clone, Debug)]
pub struct RunQueue<const N: usize> {
    entities: [Option<Entity>; N],
    /// Of each entity.
    virtual_times: [VirtualTime; N],
    /// One bit per entity.
    occupied: u64,
    /// One bit per runnable entity; not the running one's.
    waiting: u64,
    running: Option<usize>,
    /// End of the running entity's slice; `None` while no other is runnable.
    slice_end: Option<Ticks>,
    /// The running one is to make way although its slice is not over.
    preempt: bool,
    /// Entities that have yielded since the last choice.
    yielded: u64,
    /// Weight of all that are runnable or running.
    total_weight: u32,
    /// The least virtual time among those awake, as it was when it was highest: where new and woken entities come in.
    base: VirtualTime,
    /// The latest time that it was informed of.
    now: Ticks,
    pace: Pace,
}

/// The entity that is to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The entity.
    pub slot: usize,
    /// Latest time of the next call of [`RunQueue::pick`]; `None`: no other entity waits.
    pub slice_end: Option<Ticks>,
}

/// The caller's duty after a wake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Wakeup {
    /// Nothing: it waits for its turn, or was awake already.
    Waits,
    /// Call [`RunQueue::pick`]: the CPU idles, the running one is to make way, or its slice now has an end.
    PickNow,
}

/// The reason why an entity was not inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsertError {
    /// The queue does not have this slot.
    NoSuchSlot {
        /// The slot asked for.
        slot: usize,
        /// Number of slots.
        slots: usize,
    },
    /// There is an entity in this slot.
    Occupied {
        /// The slot asked for.
        slot: usize,
    },
}

impl fmt::Display for InsertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchSlot { slot, slots } => {
                write!(f, "slot {slot} is beyond this CPU's {slots}: choose another CPU")
            }
            Self::Occupied { slot } => write!(f, "slot {slot} is taken: remove what is in it first"),
        }
    }
}

impl core::error::Error for InsertError {}

impl<const N: usize> RunQueue<N> {
    /// Returns an empty queue with a clock of this rate.
    pub const fn new(ticks_per_ms: u64) -> Self {
        const { assert!(N <= MOST_SLOTS, "a queue has at most 64 slots") };
        Self {
            entities: [const { None }; N],
            virtual_times: [0; N],
            occupied: 0,
            waiting: 0,
            running: None,
            slice_end: None,
            preempt: false,
            yielded: 0,
            total_weight: 0,
            base: 0,
            now: Ticks(0),
            pace: Pace::new(ticks_per_ms),
        }
    }

    /// Puts an entity into a free slot. It is blocked until it is woken.
    pub fn insert(&mut self, slot: usize, weight: Weight, now: Ticks) -> Result<(), InsertError> {
        self.charge_running(now);
        let (base, now) = (self.base, self.now);
        match self.entities.get_mut(slot).zip(self.virtual_times.get_mut(slot)) {
            None => Err(InsertError::NoSuchSlot { slot, slots: N }),
            Some((Some(_), _)) => Err(InsertError::Occupied { slot }),
            Some((free, virtual_time)) => {
                *free = Some(Entity::new(weight, now));
                *virtual_time = base;
                self.occupied |= 1 << slot;
                Ok(())
            }
        }
    }

    /// Gives an entity another weight, for the time from now on. Where it is awake, pick next.
    pub fn set_weight(&mut self, slot: usize, weight: Weight, now: Ticks) {
        self.charge_running(now);
        let is_awake = !matches!(self.state(slot), None | Some(State::Blocked));
        let Some((entity, _)) = self.entity_mut(slot) else { return };
        let before = entity.set_weight(weight);
        if is_awake {
            self.total_weight = self.total_weight - u32::from(before.get()) + u32::from(weight.get());
        }
    }

    /// Removes an entity, whatever it does, and returns the use of its time. If it was running, pick next.
    pub fn remove(&mut self, slot: usize, now: Ticks) -> Option<Times> {
        self.block(slot, now);
        let entity = self.entities.get_mut(slot)?.take()?;
        self.occupied &= !(1 << slot);
        Some(entity.times(State::Blocked, self.now))
    }

    /// Blocks a runnable or running entity: it has halted. If it was running, pick next.
    #[inline]
    pub fn block(&mut self, slot: usize, now: Ticks) {
        self.charge_running(now);
        let now = self.now;
        let state = self.state(slot);
        let Some((entity, _)) = self.entity_mut(slot) else { return };
        match state {
            Some(State::Runnable) => entity.book_stolen(now),
            // Its time was booked above.
            Some(State::Running) => {}
            Some(State::Blocked) | None => return,
        }
        self.total_weight -= u32::from(entity.weight.get());
        self.waiting &= !(1 << slot);
        self.yielded &= !(1 << slot);
        if state == Some(State::Running) {
            self.stop_running();
        }
    }

    /// Puts the running entity behind those that wait: it has nothing useful to do but may have soon. It gives up at
    /// most one slice, and is passed over once in any case. Pick next. On any other entity this does nothing.
    pub fn yield_now(&mut self, slot: usize, now: Ticks) {
        self.account(now);
        if self.running != Some(slot) {
            return;
        }
        let (pace, total_weight) = (self.pace, self.total_weight);
        let last = slots_of(self.waiting).filter_map(|slot| self.virtual_times.get(slot).copied()).max();
        if let (Some(last), Some((entity, virtual_time))) = (last, self.entity_mut(slot)) {
            let slice = entity.virtual_span(pace.slice(entity.weight, total_weight));
            let behind = last.saturating_add(1).min(virtual_time.saturating_add(slice));
            *virtual_time = behind.max(*virtual_time);
        }
        self.yielded |= 1 << slot;
        self.waiting |= 1 << slot;
        self.stop_running();
    }

    /// The entity that has the CPU.
    pub fn running(&self) -> Option<usize> {
        self.running
    }

    /// Returns the state of an entity; `None`: there is none.
    pub fn state(&self, slot: usize) -> Option<State> {
        self.entity(slot)?;
        Some(match self.running {
            Some(running) if running == slot => State::Running,
            _ if self.waiting & 1 << slot != 0 => State::Runnable,
            _ => State::Blocked,
        })
    }

    /// The entities that wait for something, as the queue is now.
    #[inline]
    pub fn blocked(&self) -> impl Iterator<Item = usize> + use<N> {
        let running = self.running.map_or(0, |slot| 1 << slot);
        slots_of(self.occupied & !self.waiting & !running)
    }

    /// Returns the use of an entity's time, up to the latest time the queue was informed of; `None`: there is none.
    pub fn times(&self, slot: usize) -> Option<Times> {
        Some(self.entity(slot)?.times(self.state(slot)?, self.now))
    }

    /// Returns how long an entity has waited for the CPU while others had it, since it was inserted.
    pub fn stolen_ticks(&self, slot: usize) -> Ticks {
        self.times(slot).unwrap_or_default().stolen
    }
}
