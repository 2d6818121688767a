// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory of guests, as their functions reach it.

use alloc::vec::Vec;

use iommu::GuestDomain;
use pci::Bdf;

/// Memory that a guest's functions behind one unit reach.
pub struct Given {
    /// The guest's number.
    pub guest: u32,
    /// The unit's number.
    pub unit: usize,
    /// Its memory.
    pub domain: GuestDomain,
    /// Those that reach it.
    pub functions: Vec<Bdf>,
}

impl Given {
    /// A function reaches it.
    pub fn add(&mut self, function: Bdf) {
        if !self.functions.contains(&function) {
            self.functions.push(function);
        }
    }
}
