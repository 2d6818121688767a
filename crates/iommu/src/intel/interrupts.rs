// SPDX-License-Identifier: MIT OR Apache-2.0
//! The interrupt remapping table (section 9.10), one for all functions of a unit.
//!
//! A function gets a run of neighbouring entries. Each of them names its requester, which the unit verifies, also while
//! it is absent: an image that adopts the table finds each run's owner from it.

extern crate alloc;

use alloc::vec::Vec;

use units::PhysAddr;

use crate::hardware::Memory;
use crate::intel::coherence::Stores;
use crate::interrupt::{Interrupt, Message};
use crate::redirection::Signal;

/// Entries of a table: 2 to the power of `SIZE + 1`.
const ENTRIES: u16 = 4096;
const SIZE: u64 = 11;
const ENTRY_BYTES: u64 = 16;
pub(super) const BYTES: u64 = ENTRIES as u64 * ENTRY_BYTES;

const PRESENT: u64 = 1 << 0;
const LEVEL: u64 = 1 << 4;
/// Delivery mode: fixed is 0.
const DELIVERY_MODE: u64 = 0b111 << 5;
const NMI: u64 = 0b100 << 5;
/// Software's bits, which hardware ignores.
const AVAILABLE: u64 = 0b1111 << 8;
/// Verifies all 16 bits of the requester identifier.
const VERIFIED: u64 = 1 << 18;

/// Entries of one function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Run {
    first: u16,
    count: u16,
}

#[derive(Debug)]
pub(super) struct Remapping {
    at: PhysAddr,
    is_x2apic: bool,
    stores: Stores,
    /// The requesters that have entries, by rising identifier.
    opened: Vec<(u16, Run)>,
}

impl Remapping {
    /// Creates a table without interrupts; `None` where there is no memory.
    pub(super) fn new(memory: &mut impl Memory, is_x2apic: bool, stores: Stores) -> Option<Self> {
        let at = stores.allocate(memory, BYTES)?;
        Some(Self { at, is_x2apic, stores, opened: Vec::new() })
    }

    /// Adopts the table at `at` as it was left, checked.
    pub(super) fn adopt(
        memory: &impl Memory,
        at: PhysAddr,
        is_x2apic: bool,
        stores: Stores,
    ) -> Result<Self, &'static str> {
        let mut table = Self { at, is_x2apic, stores, opened: Vec::new() };
        for index in 0..ENTRIES {
            let (low, high) = table.read(memory, index);
            if high == 0 && low & PRESENT == 0 {
                continue;
            }
            let made = low & PRESENT == 0 || low & !AVAILABLE == low_of(table.signal(low), is_x2apic);
            if !made || high != VERIFIED | u64::from(high as u16) || !table.extend(high as u16, index) {
                return Err("an interrupt remapping entry is none that this image makes");
            }
        }
        Ok(table)
    }

    /// Returns the value of the table's address register (section 11.4), without the mode.
    pub(super) fn register(&self) -> u64 {
        self.at.0 | SIZE
    }

    pub(super) fn at(&self) -> PhysAddr {
        self.at
    }

    pub(super) fn is_x2apic(&self) -> bool {
        self.is_x2apic
    }

    /// Reserves `count` entries for a requester that has none, all absent; `None` where none are left.
    pub(super) fn open(&mut self, memory: &mut impl Memory, requester: u16, count: u16) -> Option<()> {
        let first = self.free_run(memory, count)?;
        for index in first..first + count {
            self.stores.store(memory, self.entry(index, 8), VERIFIED | u64::from(requester));
        }
        *self.run_mut(requester) = Run { first, count };
        Some(())
    }

    /// Returns the entries of a requester.
    pub(super) fn run(&self, requester: u16) -> core::ops::Range<u16> {
        let run = self.find(requester).map_or(Run::default(), |index| self.opened[index].1);
        run.first..run.first + run.count
    }

    /// Sets or clears an entry that is reserved, in one store. The caller invalidates.
    pub(super) fn set(&self, memory: &mut impl Memory, index: u16, signal: Option<Signal>) {
        let low = signal.map_or(0, |signal| low_of(signal, self.is_x2apic));
        self.stores.store(memory, self.entry(index, 0), low);
    }

    /// Gives back the entries of a requester: all are absent, and no cache holds one.
    pub(super) fn close(&mut self, memory: &mut impl Memory, requester: u16) {
        for index in self.run(requester) {
            self.stores.store(memory, self.entry(index, 8), 0);
        }
        if let Ok(index) = self.find(requester) {
            self.opened.remove(index);
        }
    }

    /// Returns the interrupt of an entry; `None` if it is absent or an NMI's, which only an I/O APIC has.
    pub(super) fn get(&self, memory: &impl Memory, index: u16) -> Option<Interrupt> {
        let (low, _) = self.read(memory, index);
        match self.signal(low) {
            Signal::Interrupt(interrupt) if low & PRESENT != 0 => Some(interrupt),
            _ => None,
        }
    }

    /// Returns the address of an entry.
    pub(super) fn place(&self, index: u16) -> PhysAddr {
        self.entry(index, 0)
    }

    /// Gives the table back; remapping is disabled.
    pub(super) fn free(self, memory: &mut impl Memory) {
        memory.free_piece(self.at, BYTES);
    }

    /// Returns a requester's place among those that have entries, or the one that it would have.
    fn find(&self, requester: u16) -> Result<usize, usize> {
        self.opened.binary_search_by_key(&requester, |(requester, _)| *requester)
    }

    /// Returns the run of a requester, which from now on has one.
    fn run_mut(&mut self, requester: u16) -> &mut Run {
        let index = self.find(requester).unwrap_or_else(|index| {
            self.opened.insert(index, (requester, Run::default()));
            index
        });
        &mut self.opened[index].1
    }

    /// Adds entry `index` to a requester's run; `false` if it does not continue it.
    fn extend(&mut self, requester: u16, index: u16) -> bool {
        let run = self.run_mut(requester);
        if run.count == 0 {
            run.first = index;
        }
        let continues = run.first + run.count == index;
        run.count += u16::from(continues);
        continues
    }

    fn free_run(&self, memory: &impl Memory, count: u16) -> Option<u16> {
        let mut first = 0;
        for index in 0..ENTRIES {
            if self.read(memory, index).1 != 0 {
                first = index + 1;
            } else if index + 1 - first >= count {
                return Some(first);
            }
        }
        None
    }

    fn signal(&self, low: u64) -> Signal {
        let destination = (low >> 32) as u32;
        let destination = if self.is_x2apic { destination } else { destination >> 8 & 0xff };
        match low & DELIVERY_MODE {
            NMI => Signal::Nmi { destination },
            _ => {
                let vector = (low >> 16) as u8;
                Signal::Interrupt(Interrupt { vector, destination, is_level: low & LEVEL != 0 })
            }
        }
    }

    fn entry(&self, index: u16, offset: u64) -> PhysAddr {
        PhysAddr(self.at.0 + u64::from(index) * ENTRY_BYTES + offset)
    }

    fn read(&self, memory: &impl Memory, index: u16) -> (u64, u64) {
        (memory.read_word(self.entry(index, 0)), memory.read_word(self.entry(index, 8)))
    }
}

/// Returns the lower half of a present entry: delivery to one CPU by its physical identifier, which has bits 8 to 15 of
/// the field where the unit is not in x2APIC mode.
pub(super) const fn low_of(signal: Signal, is_x2apic: bool) -> u64 {
    let (destination, what) = match signal {
        Signal::Interrupt(interrupt) => {
            let level = if interrupt.is_level { LEVEL } else { 0 };
            (interrupt.destination, level | (interrupt.vector as u64) << 16)
        }
        Signal::Nmi { destination } => (destination, NMI),
    };
    let destination = if is_x2apic { destination } else { (destination & 0xff) << 8 };
    PRESENT | what | (destination as u64) << 32
}

/// Returns the message that a function writes for its interrupt `index` (section 5.1.5.2): all its messages name the
/// run's first entry, and their data counts on from there, as MSI's does of itself.
pub(super) fn message(first: u16, index: u16) -> Message {
    const REMAPPABLE: u64 = 1 << 4;
    const HAS_SUBHANDLE: u64 = 1 << 3;
    let handle = u64::from(first & 0x7fff) << 5 | u64::from(first >> 15) << 2;
    Message { address: 0xfee0_0000 | handle | REMAPPABLE | HAS_SUBHANDLE, data: index.into() }
}
