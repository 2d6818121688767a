// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory of guests, as their functions reach it.

use iommu::GuestDomain;

/// What a guest's functions behind one unit reach.
pub struct Given {
    /// The guest's number.
    pub guest: u32,
    /// The unit's number.
    pub unit: usize,
    /// Its memory.
    pub domain: GuestDomain,
}
