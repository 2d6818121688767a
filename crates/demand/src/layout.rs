// SPDX-License-Identifier: MIT OR Apache-2.0
//! The addresses at which a guest sees its blocks.

use crate::block::BLOCK_BYTES;

/// A guest's memory from address 0 to `low_end`, and from `high_start` on what does not fit below. Both are multiples
/// of [`BLOCK_BYTES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// End of the lower part.
    pub low_end: u64,
    /// Start of the upper part.
    pub high_start: u64,
}

impl Layout {
    /// Returns the number of the block with this address, of `count`; `None`: no memory is there.
    pub fn number(self, gpa: u64, count: usize) -> Option<usize> {
        let low = self.low_end.min(count as u64 * BLOCK_BYTES);
        let offset = if gpa < low { gpa } else { gpa.checked_sub(self.high_start)?.checked_add(low)? };
        usize::try_from(offset / BLOCK_BYTES).ok().filter(|number| *number < count)
    }

    /// Returns the address of a block.
    pub fn gpa(self, number: usize) -> u64 {
        let offset = number as u64 * BLOCK_BYTES;
        if offset < self.low_end { offset } else { self.high_start + (offset - self.low_end) }
    }
}
