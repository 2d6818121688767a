// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where ranges of functions may be mapped in the guest's address space: beside its memory and its fixed devices.

use super::bar::{Space, Window};
use crate::platform::layout;

/// Ranges are mapped by whole pages.
const PAGE: u64 = 4096;

/// The PCI hole below 4 GiB, and the range above the guest's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Apertures {
    /// First addresses, and the ones behind the last.
    ranges: [(u64, u64); 2],
}

impl Apertures {
    /// None: nothing is mapped.
    pub const NONE: Self = Self { ranges: [(0, 0); 2] };

    /// Those of a guest with so many bytes of memory. All its memory and all fixed devices lie outside of them.
    pub fn beside(memory_bytes: u64) -> Self {
        // Wider than some CPUs' addresses: what no vCPU reaches may be mapped.
        let high = layout::pci_high(memory_bytes, layout::NESTED_ADDRESS_BITS);
        Self { ranges: [(layout::PCI_MMIO.0, layout::PCI_MMIO.0 + layout::PCI_MMIO_BYTES), (high.start, high.end)] }
    }

    /// Returns whether a window is memory inside of one of them, and whole pages.
    pub fn hold(&self, window: Window) -> bool {
        let is_inside = |&(first, end): &(u64, u64)| first <= window.first && window.last < end;
        let is_pages = window.first.is_multiple_of(PAGE) && window.last % PAGE == PAGE - 1;
        window.space == Space::Memory && is_pages && self.ranges.iter().any(is_inside)
    }
}

#[cfg(test)]
#[path = "aperture_tests.rs"]
mod tests;
