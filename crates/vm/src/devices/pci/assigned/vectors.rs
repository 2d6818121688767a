// SPDX-License-Identifier: MIT OR Apache-2.0
//! The interrupts of the hardware that are open: those that the guest has asked for.

use alloc::vec;
use alloc::vec::Vec;

use super::description::Description;
use super::physical::{Interrupts, Physical};
use crate::devices::pci::function::Function;
use crate::devices::pci::message::Messages;

/// How the hardware may interrupt, as the host has last been asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Vectors {
    pub interrupts: Interrupts,
    /// MSI-X vectors that are open, as bits. One that the guest masks again stays open: what it sends meanwhile becomes
    /// pending.
    pub opened: Vec<u64>,
    vectors: u16,
}

impl Vectors {
    pub(super) fn new(description: &Description) -> Self {
        let vectors = description.msix.map_or(0, |place| place.vectors);
        Self { interrupts: Interrupts::Off, opened: vec![0; usize::from(vectors).div_ceil(64)], vectors }
    }

    /// Returns how a function may interrupt, as its guest has configured it.
    pub(super) fn wanted(function: &Function, may_use_line: bool) -> Interrupts {
        match function.messages() {
            Messages::MsiX => Interrupts::MsiX,
            Messages::Msi { vectors } => Interrupts::Msi { vectors },
            Messages::Off if may_use_line => Interrupts::Line,
            Messages::Off => Interrupts::Off,
        }
    }

    /// Opens the wanted vectors, but for MSI-X vectors that the guest masks.
    pub(super) fn set(&mut self, wanted: Interrupts, function: &Function, physical: &mut impl Physical) {
        if wanted == self.interrupts {
            return;
        }
        self.interrupts = wanted;
        self.opened.fill(0);
        physical.set_interrupts(wanted);
        (0..self.vectors).for_each(|vector| self.open(vector, function, physical));
    }

    /// Closes all.
    pub(super) fn close(&mut self, physical: &mut impl Physical) {
        if self.interrupts != Interrupts::Off {
            self.interrupts = Interrupts::Off;
            self.opened.fill(0);
            physical.set_interrupts(Interrupts::Off);
        }
    }

    /// Opens an MSI-X vector that the guest does not mask.
    pub(super) fn open(&mut self, vector: u16, function: &Function, physical: &mut impl Physical) {
        let is_wanted = self.interrupts == Interrupts::MsiX && function.is_vector_unmasked(vector);
        let Some(word) = self.opened.get_mut(usize::from(vector) / 64).filter(|_| is_wanted) else { return };
        let bit = 1 << (vector % 64);
        if *word & bit == 0 {
            *word |= bit;
            physical.open_vector(vector);
        }
    }

    /// The vectors of MSI or MSI-X that are open.
    pub(super) fn each(&self) -> impl Iterator<Item = u16> + '_ {
        let msi = if let Interrupts::Msi { vectors } = self.interrupts { vectors as u16 } else { 0 };
        let is_open = |vector: &u16| self.opened[usize::from(vector / 64)] >> (vector % 64) & 1 != 0;
        let msix = if self.interrupts == Interrupts::MsiX { self.vectors } else { 0 };
        (0..msi).chain((0..msix).filter(is_open))
    }

    /// How many vectors are open with these words.
    pub(super) fn count(interrupts: Interrupts, opened: impl Iterator<Item = u64>) -> usize {
        match interrupts {
            Interrupts::Off | Interrupts::Line => 0,
            Interrupts::Msi { vectors } => vectors as usize,
            Interrupts::MsiX => opened.map(|word| word.count_ones() as usize).sum(),
        }
    }

    /// The most vectors that can be open at once.
    pub(super) fn most(&self, msi: Option<u8>) -> usize {
        usize::from(self.vectors).max(msi.map_or(0, |vectors| 1 << vectors))
    }

    /// Returns whether words have bits of vectors only that there are.
    pub(super) fn is_possible(&self, opened: impl Iterator<Item = u64>) -> bool {
        let is_there = |bit: usize| bit < usize::from(self.vectors);
        opened.enumerate().all(|(index, word)| (0..64).all(|bit| word >> bit & 1 == 0 || is_there(index * 64 + bit)))
    }
}
