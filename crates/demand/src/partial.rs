// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pages of 4 KiB that a guest frees one by one, until they are whole blocks.

use arrayvec::ArrayVec;

use crate::block::BLOCK_BYTES;

const PAGE_BYTES: u64 = 4096;
const PAGES: usize = (BLOCK_BYTES / PAGE_BYTES) as usize;
/// Blocks of which some pages are freed: a kernel frees pages of few blocks at a time.
const BLOCKS: usize = 16;

/// The blocks of which a guest has freed some pages, those freed last at the end. Of older ones the pages are not known
/// any more: they are released when all of them are freed once more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Partial {
    blocks: ArrayVec<Block, BLOCKS>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Block {
    number: u64,
    freed: [u64; PAGES / 64],
}

impl Partial {
    /// The guest has freed a page. Returns its block's address if all pages of that are freed.
    pub fn free(&mut self, page: u64) -> Option<u64> {
        let (number, index) = place(page);
        let known = self.blocks.iter().position(|block| block.number == number);
        let mut block = match known {
            Some(at) => self.blocks.remove(at),
            None => Block { number, freed: [0; PAGES / 64] },
        };
        block.freed[index / 64] |= 1 << (index % 64);
        if block.freed.iter().all(|pages| *pages == u64::MAX) {
            return Some(number * BLOCK_BYTES);
        }
        if self.blocks.is_full() {
            self.blocks.remove(0);
        }
        self.blocks.push(block);
        None
    }

    /// The guest uses a page again.
    pub fn reuse(&mut self, page: u64) {
        let (number, index) = place(page);
        if let Some(block) = self.blocks.iter_mut().find(|block| block.number == number) {
            block.freed[index / 64] &= !(1 << (index % 64));
        }
    }

    /// No page is freed.
    pub fn clear(&mut self) {
        self.blocks.clear();
    }
}

/// The number of a page's block, and the page's number there.
fn place(page: u64) -> (u64, usize) {
    (page / PAGES as u64, (page % PAGES as u64) as usize)
}
