// SPDX-License-Identifier: MIT OR Apache-2.0
//! Copies of a vCPU's registers in memory. Registers that an exit's handlers do not ask for are not read, unchanged
//! ones are not written, and while the vCPU is not loaded all of it is here.

use core::cell::Cell;

use super::loaded::Loaded;
use super::slot::Slot;
use crate::field::Field as _;

/// Copies of the slots.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    values: [Cell<u64>; Slot::COUNT],
    /// Slots whose copy is as good as the original.
    known: Cell<u64>,
    /// Slots whose copy has been changed since.
    changed: u64,
}

impl Cache {
    /// All zero, to be written.
    pub(super) fn new() -> Self {
        Self { values: [const { Cell::new(0) }; Slot::COUNT], known: Cell::new(u64::MAX), changed: u64::MAX }
    }

    /// A slot's value.
    #[inline]
    pub(super) fn get(&self, slot: Slot, cpu: &impl Loaded) -> u64 {
        let value = &self.values[slot as usize];
        if self.known.get() & slot.bit() == 0 {
            value.set(slot.read(cpu));
            self.known.set(self.known.get() | slot.bit());
        }
        value.get()
    }

    /// A slot's copy, which is known.
    pub(super) fn copy(&self, slot: Slot) -> u64 {
        self.values[slot as usize].get()
    }

    /// Changes a slot's value, which the next entry finds.
    #[inline(never)]
    pub(super) fn set(&mut self, slot: Slot, value: u64) {
        self.values[slot as usize].set(value);
        self.known.set(self.known.get() | slot.bit());
        self.changed |= slot.bit();
    }

    /// Writes what has been changed. The vCPU is loaded.
    #[inline]
    pub(super) fn write(&mut self, cpu: &mut impl Loaded) {
        while self.changed != 0 {
            let slot = Slot::ALL[self.changed.trailing_zeros() as usize];
            self.changed &= self.changed - 1;
            slot.write(cpu, self.values[slot as usize].get());
        }
    }

    /// Returns whether one of these slots is to be written.
    #[inline]
    pub(super) fn has_changed(&self, slots: u64) -> bool {
        self.changed & slots != 0
    }

    /// The guest has run: copies of its registers are old.
    #[inline]
    pub(super) fn invalidate(&mut self) {
        self.known.set(Slot::SOFTWARES);
    }

    /// Reads all, before the vCPU is loaded no more.
    pub(super) fn read_all(&self, cpu: &impl Loaded) {
        Slot::ALL.iter().for_each(|slot| _ = self.get(*slot, cpu));
    }

    /// Another vCPU had the CPU: what stays in it is to be written again.
    pub(super) fn arrive_in_cpu(&mut self) {
        self.changed |= Slot::LIVE;
    }
}
