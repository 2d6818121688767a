// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ranges of physical addresses. A range gives the place; its owner is recorded by `frames`.

use core::fmt;

use crate::address::PhysAddr;
use crate::size::ByteSize;

/// The physical addresses `[start, end)`. Never runs backwards: the fields are private for that reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PhysRange {
    start: PhysAddr,
    end: PhysAddr,
}

impl PhysRange {
    /// `[start, end)`; `None` if it would run backwards.
    pub const fn new(start: PhysAddr, end: PhysAddr) -> Option<Self> {
        if start.0 <= end.0 { Some(Self { start, end }) } else { None }
    }

    /// `bytes` bytes from `start`; `None` if that passes the end of the address space.
    pub const fn from_start(start: PhysAddr, bytes: u64) -> Option<Self> {
        match start.checked_add(bytes) {
            Some(end) => Some(Self { start, end }),
            None => None,
        }
    }

    /// The first address.
    pub const fn start(self) -> PhysAddr {
        self.start
    }

    /// The address after the last.
    pub const fn end(self) -> PhysAddr {
        self.end
    }

    /// Returns how many bytes it holds.
    pub const fn bytes(self) -> u64 {
        self.end.0 - self.start.0
    }

    /// Returns whether it holds nothing.
    pub const fn is_empty(self) -> bool {
        self.start.0 == self.end.0
    }

    /// Returns whether `address` lies in it.
    pub const fn contains(self, address: PhysAddr) -> bool {
        self.start.0 <= address.0 && address.0 < self.end.0
    }

    /// Returns whether all of `other` lies in it.
    pub const fn contains_range(self, other: Self) -> bool {
        self.start.0 <= other.start.0 && other.end.0 <= self.end.0
    }

    /// Returns the bytes that both hold; `None` if they share none.
    pub fn intersection(self, other: Self) -> Option<Self> {
        let (start, end) = (self.start.max(other.start), self.end.min(other.end));
        (start < end).then_some(Self { start, end })
    }

    /// Returns whether start and end are both multiples of `alignment`, a power of two.
    pub const fn is_aligned(self, alignment: u64) -> bool {
        self.start.is_aligned(alignment) && self.end.is_aligned(alignment)
    }

    /// The whole units of `alignment` (a power of two) inside it; empty if it holds none.
    pub fn aligned_inwards(self, alignment: u64) -> Self {
        let end = self.end.align_down(alignment);
        let start = self.start.align_up(alignment).unwrap_or(end).min(end);
        Self { start, end }
    }

    /// The whole units of `alignment` (a power of two) that it touches; `None` past the end of the address space.
    pub fn aligned_outwards(self, alignment: u64) -> Option<Self> {
        Some(Self { start: self.start.align_down(alignment), end: self.end.align_up(alignment)? })
    }
}

/// `0x100000-0x1fffff (1 MiB)`: the last address is inclusive, as firmware tables print it.
impl fmt::Display for PhysRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_empty() {
            true => write!(f, "{} (empty)", self.start),
            false => write!(f, "{}-{:#x} ({})", self.start, self.end.0 - 1, ByteSize(self.bytes())),
        }
    }
}
