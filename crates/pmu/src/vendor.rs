// SPDX-License-Identifier: MIT OR Apache-2.0
//! Vendor of counters.

/// Vendor of the registers that a guest sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vendor {
    /// Architectural performance monitoring, version 2.
    Intel,
    /// Performance monitoring version 2, with the extension's and the older registers.
    Amd,
}
