// SPDX-License-Identifier: MIT OR Apache-2.0
//! A mapping as it is read from the tables.

use units::{PageSize, PhysAddr};

use crate::format::Flags;

/// One page, as found in the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The address that is translated; from [`crate::Tables::translate`], the one asked for.
    pub address: u64,
    /// The translated address.
    pub phys: PhysAddr,
    /// Permitted accesses.
    pub flags: Flags,
    /// Size of the page.
    pub size: PageSize,
}
