// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory as the CPU has it, and as the unit sees it.

use std::collections::BTreeMap;
use std::vec::Vec;

use crate::intel::model::hardware::Features;

/// The content of memory that was never written, or was freed: present as an entry of any table, and wrong.
const GARBAGE: u64 = 0x0bad_bad0_bad0_1f8f;

struct Piece {
    is_free: bool,
    stored: Vec<u64>,
    seen: Vec<u64>,
}

pub(in crate::intel) struct Ram {
    pieces: BTreeMap<u64, Piece>,
    is_snooped: bool,
    next: u64,
    /// Number of pieces that are left.
    pub(in crate::intel) budget: usize,
    /// Stores of the CPU to all pieces.
    pub(in crate::intel) stores: usize,
}

impl Ram {
    pub(super) fn new(features: Features) -> Self {
        let is_snooped = features.is_coherent && !features.buffers_writes;
        Self { pieces: BTreeMap::new(), is_snooped, next: 1 << 20, budget: usize::MAX, stores: 0 }
    }

    pub(super) fn allocate(&mut self, bytes: u64) -> Option<u64> {
        assert!(bytes.is_power_of_two() && bytes >= 4096);
        self.budget = self.budget.checked_sub(1)?;
        let at = self.next.next_multiple_of(bytes);
        self.next = at + bytes;
        let words = bytes as usize / 8;
        let piece = Piece { is_free: false, stored: std::vec![0; words], seen: std::vec![GARBAGE; words] };
        self.pieces.insert(at, piece);
        Some(at)
    }

    /// Adds a frame that is not one of [`allocate`](Self::allocate)'s. It keeps its content.
    pub(super) fn give(&mut self, at: u64) {
        let piece = Piece { is_free: false, stored: std::vec![GARBAGE; 512], seen: std::vec![GARBAGE; 512] };
        self.pieces.insert(at, piece);
    }

    /// Frees memory. None is given out twice, so that a use after free is found.
    pub(super) fn free(&mut self, at: u64, bytes: u64) {
        self.budget = self.budget.saturating_add(1);
        let piece = self.pieces.get_mut(&at).expect("what is given back was allocated");
        assert!(!piece.is_free && piece.stored.len() as u64 * 8 == bytes);
        piece.is_free = true;
        piece.stored.fill(GARBAGE);
        piece.seen.fill(GARBAGE);
    }

    /// Pieces that are in use.
    pub(in crate::intel) fn in_use(&self) -> usize {
        self.pieces.values().filter(|piece| !piece.is_free).count()
    }

    pub(in crate::intel) fn load(&self, at: u64) -> u64 {
        let (piece, index) = self.find(at).expect("only memory is read");
        assert!(!piece.is_free, "{at:#x} was given back");
        piece.stored[index]
    }

    pub(in crate::intel) fn store(&mut self, at: u64, word: u64) {
        self.stores += 1;
        let (piece, index) = self.find_mut(at).expect("only memory is written");
        assert!(!piece.is_free, "{at:#x} was given back");
        piece.stored[index] = word;
    }

    pub(super) fn write_back(&mut self, at: u64, bytes: u64) {
        for at in (at & !7..at + bytes).step_by(8) {
            let (piece, index) = self.find_mut(at).expect("only memory is written back");
            piece.seen[index] = piece.stored[index];
        }
    }

    /// Writes the write buffers to memory.
    pub(super) fn flush_buffers(&mut self) {
        for piece in self.pieces.values_mut() {
            piece.seen.clone_from(&piece.stored);
        }
    }

    /// Returns the entry that the unit reads; `None` where there is no memory.
    pub(super) fn seen(&self, at: u64) -> Option<u64> {
        let (piece, index) = self.find(at)?;
        Some(if self.is_snooped { piece.stored[index] } else { piece.seen[index] })
    }

    fn find(&self, at: u64) -> Option<(&Piece, usize)> {
        let (start, piece) = self.pieces.range(..=at).next_back()?;
        let index = (at - start) as usize / 8;
        (at.is_multiple_of(8) && index < piece.stored.len()).then_some((piece, index))
    }

    fn find_mut(&mut self, at: u64) -> Option<(&mut Piece, usize)> {
        let (start, piece) = self.pieces.range_mut(..=at).next_back()?;
        let index = (at - start) as usize / 8;
        (at.is_multiple_of(8) && index < piece.stored.len()).then_some((piece, index))
    }
}
