// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tree of CPUs, in which each watches its children, the boot CPU (number 0) at its root.

/// Children of each CPU. Eight make five levels of 4,096 CPUs and three of 128; a parent is done with its
/// children in the time of eight cache-line transfers.
pub const FAN_OUT: u32 = 8;

/// The tree of CPUs `0..count`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tree {
    /// Number of CPUs.
    pub count: u32,
}

impl Tree {
    /// Returns the parent; the root is its own.
    pub const fn parent(self, index: u32) -> u32 {
        index.saturating_sub(1) / FAN_OUT
    }

    /// Its children, as numbers.
    pub fn children(self, index: u32) -> core::ops::Range<u32> {
        let first = index.saturating_mul(FAN_OUT).saturating_add(1);
        first.min(self.count)..first.saturating_add(FAN_OUT).min(self.count)
    }
}

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;
