// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is found in the tables.

use units::{PageSize, PhysAddr};

use crate::format::Flags;

/// One page, as found in the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The address that is translated; from [`crate::Tables::translate`], the one asked for.
    pub address: u64,
    /// What it translates to.
    pub phys: PhysAddr,
    /// What the page allows.
    pub flags: Flags,
    /// How large the page is.
    pub size: PageSize,
}
