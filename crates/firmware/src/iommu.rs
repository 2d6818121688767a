// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tables that describe IOMMUs: IVRS (AMD I/O Virtualization Technology Specification, 48882 rev 3.10, section 5.2)
//! and DMAR (Intel Virtualization Technology for Directed I/O, rev 4.1, chapter 8).
//!
//! Here only their addresses are noted. The crate `iommu` reads them: the devices that they describe depend on PCI
//! bridges.

use crate::table::{Signature, Table};
use crate::{Fault, Tables};

/// Where the entries of either begin.
pub const MINIMUM_BYTES: u32 = 48;

/// Notes where AMD's table is.
pub fn read_ivrs(table: &Table<'_>, tables: &mut Tables) {
    tables.ivrs = Some(table.address());
}

/// Notes where Intel's table is. After AMD's: no machine has both.
pub fn read_dmar(table: &Table<'_>, tables: &mut Tables) {
    tables.dmar = Some(table.address());
    if tables.ivrs.is_some() {
        tables.warn(Signature::DMAR, Fault::Contradicts { other: Signature::IVRS });
    }
}

#[cfg(test)]
#[path = "iommu_tests.rs"]
mod tests;
