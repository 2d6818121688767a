// SPDX-License-Identifier: MIT OR Apache-2.0
//! A CPU's samples on their way from the handler that takes them to their reader: one of each, neither waits. A sample
//! that finds no room is lost, and counted.

use crate::sample::words_of;
use crate::sync::{AtomicU32, Ordering};

/// A ring of so many words, a power of two. Any bits are one, once it is [reset](Self::reset).
#[derive(Debug)]
#[repr(C)]
pub struct Ring<const WORDS: usize> {
    /// Number of words that have been written, and read.
    written: AtomicU32,
    read: AtomicU32,
    lost: AtomicU32,
    words: [AtomicU32; WORDS],
}

impl<const WORDS: usize> Ring<WORDS> {
    const MASK: u32 = {
        assert!(WORDS.is_power_of_two() && WORDS <= 1 << 31, "numbers of words go round with the ring");
        WORDS as u32 - 1
    };

    /// Empties it, whatever the memory held. Before any other code uses it.
    pub fn reset(&self) {
        self.written.store(0, Ordering::Relaxed);
        self.read.store(0, Ordering::Relaxed);
        self.lost.store(0, Ordering::Relaxed);
    }

    /// Adds the words of one sample. For the writer.
    pub fn push(&self, sample: &[u32]) {
        let mut written = self.written.load(Ordering::Relaxed);
        let used = written.wrapping_sub(self.read.load(Ordering::Acquire)) as usize;
        if used + sample.len() > WORDS {
            self.lost.store(self.lost.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
            return;
        }
        for word in sample {
            self.at(written).store(*word, Ordering::Relaxed);
            written = written.wrapping_add(1);
        }
        self.written.store(written, Ordering::Release);
    }

    /// Takes whole samples of at most `room` words together; returns how much room is left. For the reader.
    pub fn take(&self, mut room: usize, each: &mut dyn FnMut(u32)) -> usize {
        let written = self.written.load(Ordering::Acquire);
        let mut read = self.read.load(Ordering::Relaxed);
        while read != written {
            let words = words_of(self.at(read).load(Ordering::Relaxed));
            if words > room {
                break;
            }
            for _ in 0..words {
                each(self.at(read).load(Ordering::Relaxed));
                read = read.wrapping_add(1);
            }
            room -= words;
        }
        self.read.store(read, Ordering::Release);
        room
    }

    /// Returns how many samples found no room.
    pub fn lost(&self) -> u32 {
        self.lost.load(Ordering::Relaxed)
    }

    fn at(&self, number: u32) -> &AtomicU32 {
        &self.words[(number & Self::MASK) as usize]
    }
}

#[cfg(test)]
impl<const WORDS: usize> Ring<WORDS> {
    /// A ring with the previous contents of its memory.
    pub(crate) fn of_any_memory() -> Self {
        let word = || AtomicU32::new(99);
        Self { written: word(), read: word(), lost: word(), words: core::array::from_fn(|_| word()) }
    }
}
