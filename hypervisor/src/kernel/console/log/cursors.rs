// SPDX-License-Identifier: MIT OR Apache-2.0
//! A reader's cursors of all rings, as per-CPU variables: for readers that must not allocate.

use core::sync::atomic::{AtomicU64, Ordering};

use klog::{Cursor, Cursors};

use crate::arch::cpu_local::CpuLocal;

/// A reader's cursor of each CPU's ring, as a word; 0 is the beginning of the log.
pub struct CpuCursors(pub &'static CpuLocal<AtomicU64>);

impl CpuCursors {
    /// Moves all cursors to the beginning of the log.
    pub fn restart(&self) {
        self.0.all().for_each(|(_, word)| word.store(Cursor::start().to_word(), Ordering::Relaxed));
    }
}

impl Cursors for CpuCursors {
    fn get(&self, number: usize) -> Option<Cursor> {
        self.0.of(number as u32).map(|word| Cursor::from_word(word.load(Ordering::Relaxed)))
    }

    fn set(&mut self, number: usize, cursor: Cursor) {
        self.0.of(number as u32).into_iter().for_each(|word| word.store(cursor.to_word(), Ordering::Relaxed));
    }
}
