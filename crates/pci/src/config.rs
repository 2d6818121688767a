// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reaching registers, and what that costs.

use core::ops::{Add, AddAssign};

use crate::Bdf;

/// The machine's configuration space, read: a survey changes no function. A register that nothing answers
/// for reads as ones.
pub trait ConfigSpace {
    /// Reads the four bytes at `register`, a multiple of four.
    fn read(&mut self, place: Bdf, register: u16) -> u32;
    /// Reads a clock, in ticks of the caller's choice.
    fn now(&mut self) -> u64;
    /// Waits a moment (about a microsecond) before a function that is not ready is asked again.
    fn pause(&mut self);
}

/// The machine's configuration space, also written: for functions that are about to be a guest's. A write is as wide as
/// it is asked for, since a register beside may clear bits that are written as ones (the status beside the command).
pub trait ConfigWrite: ConfigSpace {
    /// Writes the byte at `register`.
    fn write8(&mut self, place: Bdf, register: u16, value: u8);
    /// Writes the two bytes at `register`, a multiple of two.
    fn write16(&mut self, place: Bdf, register: u16, value: u16);
    /// Writes the four bytes at `register`, a multiple of four.
    fn write32(&mut self, place: Bdf, register: u16, value: u32);
}

/// Cost of accesses to registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Configuration registers read.
    pub accesses: u32,
    /// Ticks of [`ConfigSpace::now`].
    pub ticks: u64,
}

impl Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { accesses: self.accesses.saturating_add(other.accesses), ticks: self.ticks.saturating_add(other.ticks) }
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// One function's registers, with a count of accesses.
pub(crate) struct Registers<'a> {
    config: &'a mut dyn ConfigSpace,
    place: Bdf,
    accesses: u32,
    began: u64,
}

impl<'a> Registers<'a> {
    pub(crate) fn of(config: &'a mut dyn ConfigSpace, place: Bdf) -> Self {
        let began = config.now();
        Self { config, place, accesses: 0, began }
    }

    pub(crate) fn place(&self) -> Bdf {
        self.place
    }

    pub(crate) fn read(&mut self, register: u16) -> u32 {
        self.accesses += 1;
        self.config.read(self.place, register & !3)
    }

    pub(crate) fn pause(&mut self) {
        self.config.pause();
    }

    /// Returns what has been spent since these were taken up.
    pub(crate) fn cost(&mut self) -> Cost {
        Cost { accesses: self.accesses, ticks: self.config.now().wrapping_sub(self.began) }
    }
}
