// SPDX-License-Identifier: MIT OR Apache-2.0
//! The CPU that a vCPU is on.
//!
//! A CPU may keep a part of a vCPU's control block in itself while the vCPU is on it (VMX does, until VMCLEAR), so the
//! block's memory must neither be used elsewhere nor given back before the vCPU has departed. This is the bookkeeping
//! by which each arrival is matched by one departure, on the same CPU.

use core::fmt;

/// The CPU that a vCPU is on, if any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Residence {
    cpu: Option<u32>,
}

/// An arrival or a departure that the one before does not match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misplaced {
    /// It arrives on a CPU, and has not departed from this one.
    StillOn(u32),
    /// It departs from a CPU, and is on this one.
    IsOn(u32),
    /// It departs, and is on no CPU.
    Nowhere,
}

impl Residence {
    /// On no CPU.
    pub const fn nowhere() -> Self {
        Self { cpu: None }
    }

    /// Notes the arrival on a CPU.
    ///
    /// # Errors
    /// [`Misplaced::StillOn`]: it has not departed from another, or from this one. It counts as arrived.
    pub fn arrive(&mut self, cpu: u32) -> Result<(), Misplaced> {
        match self.cpu.replace(cpu) {
            None => Ok(()),
            Some(other) => Err(Misplaced::StillOn(other)),
        }
    }

    /// Notes the departure from a CPU.
    ///
    /// # Errors
    /// [`Misplaced`]: it is not on that CPU. It counts as departed.
    pub fn depart(&mut self, cpu: u32) -> Result<(), Misplaced> {
        match self.cpu.take() {
            Some(here) if here == cpu => Ok(()),
            Some(other) => Err(Misplaced::IsOn(other)),
            None => Err(Misplaced::Nowhere),
        }
    }

    /// The CPU that it is on.
    pub const fn cpu(self) -> Option<u32> {
        self.cpu
    }
}

impl fmt::Display for Misplaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StillOn(cpu) => write!(f, "it has not departed from cpu{cpu}"),
            Self::IsOn(cpu) => write!(f, "it is on cpu{cpu}"),
            Self::Nowhere => f.write_str("it is on no CPU"),
        }
    }
}

#[cfg(test)]
#[path = "residence_tests.rs"]
mod tests;
