// SPDX-License-Identifier: MIT OR Apache-2.0
//! The slots of guests: the guests that this host has now.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

use bundle::limits;
use spin::Mutex;

use crate::guests::guest::Guest;

/// All guests.
pub static GUESTS: Guests = Guests::new();

/// A slot for each guest that there can be. Each has a lock of its own, so that CPUs wait for one another only where
/// they mean the same guest.
pub struct Guests {
    slots: [Mutex<Option<Arc<Guest>>>; limits::GUESTS],
    /// A bit for each slot that has a guest.
    taken: AtomicU64,
}

const _: () = assert!(limits::GUESTS <= u64::BITS as usize);

/// The guests, by rising number.
pub struct All {
    guests: &'static Guests,
    /// A bit for each slot that is still to be visited.
    left: u64,
}

impl Iterator for All {
    type Item = Arc<Guest>;

    // Once in the image: it is called in many places, and on no exit path.
    #[inline(never)]
    fn next(&mut self) -> Option<Arc<Guest>> {
        while self.left != 0 {
            let number = self.left.trailing_zeros();
            self.left &= self.left - 1;
            if let Some(guest) = self.guests.at(number) {
                return Some(guest);
            }
        }
        None
    }
}

impl Guests {
    const fn new() -> Self {
        Self { slots: [const { Mutex::new(None) }; limits::GUESTS], taken: AtomicU64::new(0) }
    }

    /// The guests, by rising number.
    pub fn all(&'static self) -> All {
        All { guests: self, left: self.taken.load(Ordering::Acquire) }
    }

    /// The guest of this number.
    pub fn at(&self, number: u32) -> Option<Arc<Guest>> {
        self.slots.get(number as usize)?.lock().clone()
    }

    /// The guest of this name.
    pub fn named(&'static self, name: &str) -> Option<Arc<Guest>> {
        self.all().find(|guest| guest.config.name == name)
    }

    /// Puts a guest into the slot of its number.
    pub fn put(&self, guest: Arc<Guest>) {
        let number = guest.number;
        if let Some(slot) = self.slots.get(number as usize) {
            let before = slot.lock().replace(guest);
            self.taken.fetch_or(1 << number, Ordering::AcqRel);
            // This may be the last of it: not under the lock.
            drop(before);
        }
    }

    /// Takes the guest of this number out of its slot.
    pub fn remove(&self, number: u32) {
        let removed = self.slots.get(number as usize).and_then(|slot| {
            self.taken.fetch_and(!(1 << number), Ordering::AcqRel);
            slot.lock().take()
        });
        // This may be the last of it: not under the lock.
        drop(removed);
    }

    /// The lowest number that no guest has.
    pub fn free_number(&self) -> Option<u32> {
        let number = self.taken.load(Ordering::Acquire).trailing_ones();
        ((number as usize) < limits::GUESTS).then_some(number)
    }

    /// Returns whether no guest is being started, or is about to be.
    pub fn is_none_starting(&'static self) -> bool {
        self.all().all(|guest| !guest.is_starting())
    }

    /// Returns whether every guest has ended, and nothing has been ordered.
    pub fn are_done(&'static self) -> bool {
        self.all().all(|guest| guest.is_done())
    }
}
