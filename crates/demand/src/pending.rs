// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes of blocks that are under way: those that are hidden, and spare frames while an update is under way.

use arrayvec::ArrayVec;

/// Frames that are kept for blocks that come while an update is under way.
pub const SPARES: usize = 16;
/// The last of them, which only devices get: their drivers cannot wait.
const SPARES_FOR_DEVICES: usize = 8;
/// Blocks that are hidden at a time; a guest that frees more keeps the rest.
const HIDDEN_MOST: usize = 128;

/// A spare frame, and the number of the block that it has become.
#[derive(Debug)]
pub(crate) struct Spare {
    pub physical: u64,
    pub block: Option<u32>,
}

/// Changes that are under way.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub hidden: ArrayVec<u32, HIDDEN_MOST>,
    /// The change of the address space since which all of them are hidden.
    pub change: u64,
    pub spares: ArrayVec<Spare, SPARES>,
    /// Updates that are under way: one, or while it is packed once more two.
    pub holds: u32,
}

impl Changes {
    /// Returns whether an update is under way.
    pub fn is_held(&self) -> bool {
        self.holds > 0
    }

    /// Nothing changes, and these are spares.
    pub fn adopt(&mut self, spares: impl Iterator<Item = u64>) {
        self.holds = 1;
        self.spares = spares.take(SPARES).map(|physical| Spare { physical, block: None }).collect();
    }

    /// Keeps a frame as a spare; returns it if there are enough.
    pub fn keep(&mut self, physical: u64) -> Option<u64> {
        self.spares.try_push(Spare { physical, block: None }).err().map(|rest| rest.element().physical)
    }

    /// Returns the address of a spare frame, which becomes a block.
    pub fn use_spare(&mut self, number: usize, is_device: bool) -> Option<u64> {
        let kept = if is_device { 0 } else { SPARES_FOR_DEVICES };
        let mut left = self.spares.iter_mut().filter(|spare| spare.block.is_none()).skip(kept);
        let spare = left.next()?;
        spare.block = Some(number as u32);
        Some(spare.physical)
    }
}
