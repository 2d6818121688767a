// SPDX-License-Identifier: MIT OR Apache-2.0
//! From the handler of #MC, which may interrupt its CPU anywhere, to that CPU's loop.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use units::{PhysAddr, PhysRange};

use crate::severity::Severity;
use crate::status::Status;
use crate::unit::Found;

/// Entries that wait at most. A power of two.
const SLOTS: u32 = 8;
const WORDS: usize = 5;
const HAS_ADDRESS: u64 = 1 << 32;
/// The bit in the same word as [`HAS_ADDRESS`] that states that the error was not signalled.
const IS_UNSIGNALLED: u64 = 1 << 33;

/// An error that was found, and has yet to be acted on.
pub type Damage = Found;

/// Errors that wait for their CPU's loop. One CPU fills it, in a handler that nothing but another #MC interrupts (which
/// would be a shutdown while MCG_STATUS.MCIP is set), and empties it.
#[derive(Debug)]
pub struct Pending {
    slots: [[AtomicU64; WORDS]; SLOTS as usize],
    /// Entries ever put in, and ever taken out.
    put: AtomicU32,
    taken: AtomicU32,
}

impl Pending {
    /// Nothing waits.
    pub const fn new() -> Self {
        Self {
            slots: [const { [const { AtomicU64::new(0) }; WORDS] }; SLOTS as usize],
            put: AtomicU32::new(0),
            taken: AtomicU32::new(0),
        }
    }

    /// Returns whether something waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.put.load(Ordering::Relaxed) == self.taken.load(Ordering::Relaxed)
    }

    /// Leaves an error for the loop. `false` if there is no slot for it.
    #[must_use]
    pub fn put(&self, damage: &Damage) -> bool {
        let put = self.put.load(Ordering::Relaxed);
        if put.wrapping_sub(self.taken.load(Ordering::Acquire)) >= SLOTS {
            return false;
        }
        let memory = damage.memory.unwrap_or_default();
        let flags = if damage.address.is_some() { HAS_ADDRESS } else { 0 }
            | if damage.severity == Severity::Unsignalled { IS_UNSIGNALLED } else { 0 };
        let words = [
            u64::from(damage.bank) | flags,
            damage.status.0,
            damage.address.unwrap_or(0),
            memory.start().0,
            memory.bytes(),
        ];
        let slot = &self.slots[(put % SLOTS) as usize];
        slot.iter().zip(words).for_each(|(word, value)| word.store(value, Ordering::Relaxed));
        self.put.store(put.wrapping_add(1), Ordering::Release);
        true
    }

    /// Takes the oldest one.
    pub fn take(&self) -> Option<Damage> {
        let taken = self.taken.load(Ordering::Relaxed);
        if self.put.load(Ordering::Acquire) == taken {
            return None;
        }
        let slot = &self.slots[(taken % SLOTS) as usize];
        let [flags, status, address, start, bytes] = core::array::from_fn(|n| slot[n].load(Ordering::Relaxed));
        self.taken.store(taken.wrapping_add(1), Ordering::Release);
        let is_unsignalled = flags & IS_UNSIGNALLED != 0;
        Some(Damage {
            bank: flags as u32,
            status: Status(status),
            address: (flags & HAS_ADDRESS != 0).then_some(address),
            memory: PhysRange::from_start(PhysAddr(start), bytes).filter(|range| !range.is_empty()),
            severity: if is_unsignalled { Severity::Unsignalled } else { Severity::Optional },
        })
    }
}

impl Default for Pending {
    fn default() -> Self {
        Self::new()
    }
}
