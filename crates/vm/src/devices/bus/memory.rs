// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which device decodes an address for good.

use alloc::vec::Vec;

use crate::addr::Gpa;

/// A range of memory that a device decodes for good.
#[derive(Clone, Copy, Debug)]
struct Claimed {
    first: Gpa,
    bytes: u64,
    device: usize,
    range: u8,
}

/// The ranges of all devices.
pub(super) struct MemoryMap(Vec<Claimed>);

impl MemoryMap {
    /// One without ranges.
    pub(super) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Returns whether no range of a device is there.
    pub(super) fn is_free(&self, first: Gpa, bytes: u64) -> bool {
        let overlaps = |other: &Claimed| {
            first.0 < other.first.0.saturating_add(other.bytes) && other.first.0 < first.0.saturating_add(bytes)
        };
        bytes > 0 && !self.0.iter().any(overlaps)
    }

    /// Adds a device's range, by its number there.
    pub(super) fn add(&mut self, (first, bytes): (Gpa, u64), (device, range): (usize, u8)) {
        self.0.push(Claimed { first, bytes, device, range });
    }

    /// The device that decodes an address, its range, and where in it.
    pub(super) fn find(&self, gpa: Gpa) -> Option<(usize, u8, u64)> {
        let found = self.0.iter().find(|claim| gpa.0.wrapping_sub(claim.first.0) < claim.bytes)?;
        Some((found.device, found.range, gpa.0 - found.first.0))
    }
}
