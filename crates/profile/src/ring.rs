// SPDX-License-Identifier: MIT OR Apache-2.0
//! A processor's samples on their way from the handler that takes them to who reads them: one of each, neither waits. A sample that
//! finds no room is lost, and counted.

use crate::sample::words_of;
use crate::sync::{AtomicU32, Ordering};

/// Words before those of the samples: how many were written, read, and samples lost; all counted on from the last round.
const HEAD_WORDS: usize = 3;

/// A ring in memory of its user's.
#[derive(Debug)]
pub struct Ring<'m> {
    written: &'m AtomicU32,
    read: &'m AtomicU32,
    lost: &'m AtomicU32,
    words: &'m [AtomicU32],
}

impl<'m> Ring<'m> {
    /// The ring in these words, of which it uses a power of two for samples. `None` where that is none.
    pub fn in_words(memory: &'m [AtomicU32]) -> Option<Self> {
        let (head, words) = memory.split_at_checked(HEAD_WORDS)?;
        let capacity = 1 << words.len().checked_ilog2()?;
        Some(Self { written: &head[0], read: &head[1], lost: &head[2], words: &words[..capacity] })
    }

    /// Empties it, whatever the memory held. Before anybody else has it.
    pub fn reset(&self) {
        [self.written, self.read, self.lost].iter().for_each(|word| word.store(0, Ordering::Relaxed));
    }

    /// Adds the words of one sample. For the writer.
    pub fn push(&self, sample: &[u32]) {
        let written = self.written.load(Ordering::Relaxed);
        let used = written.wrapping_sub(self.read.load(Ordering::Acquire)) as usize;
        if self.words.len() - used < sample.len() {
            self.lost.store(self.lost.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
            return;
        }
        for (offset, word) in (0..).zip(sample) {
            self.at(written.wrapping_add(offset)).store(*word, Ordering::Relaxed);
        }
        self.written.store(written.wrapping_add(sample.len() as u32), Ordering::Release);
    }

    /// Takes whole samples of at most `room` words together; says how many words that were. For the reader.
    pub fn take(&self, room: usize, mut each: impl FnMut(u32)) -> usize {
        let written = self.written.load(Ordering::Acquire);
        let read = self.read.load(Ordering::Relaxed);
        let mut taken: u32 = 0;
        while read.wrapping_add(taken) != written {
            let words = words_of(self.at(read.wrapping_add(taken)).load(Ordering::Relaxed));
            if taken as usize + words > room {
                break;
            }
            for _ in 0..words {
                each(self.at(read.wrapping_add(taken)).load(Ordering::Relaxed));
                taken += 1;
            }
        }
        self.read.store(read.wrapping_add(taken), Ordering::Release);
        taken as usize
    }

    /// How many samples found no room.
    pub fn lost(&self) -> u32 {
        self.lost.load(Ordering::Relaxed)
    }

    fn at(&self, number: u32) -> &'m AtomicU32 {
        &self.words[number as usize & (self.words.len() - 1)]
    }
}
