// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sets of indices that are united two by two (a disjoint-set forest).

use alloc::vec::Vec;

pub(super) struct Sets {
    /// Each index's parent; a root is its own.
    parents: Vec<usize>,
}

impl Sets {
    /// Creates one set for each index.
    pub fn new(count: usize) -> Self {
        Self { parents: (0..count).collect() }
    }

    /// Returns the index that stands for the set.
    pub fn find(&mut self, mut index: usize) -> usize {
        while self.parents[index] != index {
            self.parents[index] = self.parents[self.parents[index]];
            index = self.parents[index];
        }
        index
    }

    pub fn unite(&mut self, one: usize, other: usize) {
        let (one, other) = (self.find(one), self.find(other));
        self.parents[one] = other;
    }
}
