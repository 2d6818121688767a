// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sets of ports.

/// The most ports of a network.
pub const MAX_PORTS: usize = 64;

/// A set of a network's ports, by their numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ports(pub u64);

impl Ports {
    /// No port.
    pub const NONE: Self = Self(0);

    /// One port; none if the number is too large.
    pub fn only(port: usize) -> Self {
        Self(u32::try_from(port).ok().and_then(|port| 1u64.checked_shl(port)).unwrap_or(0))
    }

    /// Returns whether a port is in it.
    pub fn has(self, port: usize) -> bool {
        self.0 & Self::only(port).0 != 0
    }

    /// The ports of both.
    pub fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The ports of either.
    pub fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Those that are not in the other.
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Returns whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Their number.
    pub fn count(self) -> u32 {
        self.0.count_ones()
    }
}

impl Iterator for Ports {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let first = self.0.trailing_zeros() as usize;
        self.0 &= self.0.wrapping_sub(1);
        (first < MAX_PORTS).then_some(first)
    }
}
