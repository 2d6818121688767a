// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bytes on their way, in a buffer of fixed size.

use alloc::boxed::Box;
use alloc::vec;

/// The buffer.
#[derive(Clone, Debug)]
pub(crate) struct Ring {
    bytes: Box<[u8]>,
    first: usize,
    used: usize,
}

impl Ring {
    pub fn new(bytes: usize) -> Self {
        Self { bytes: vec![0; bytes].into(), first: 0, used: 0 }
    }

    pub fn used(&self) -> usize {
        self.used
    }

    pub fn free(&self) -> usize {
        self.bytes.len() - self.used
    }

    pub fn clear(&mut self) {
        (self.first, self.used) = (0, 0);
    }

    /// The oldest bytes, at most so many, in up to two pieces.
    pub fn oldest(&self, most: usize) -> [&[u8]; 2] {
        let most = most.min(self.used);
        let behind = &self.bytes[self.first..];
        let here = most.min(behind.len());
        [&behind[..here], &self.bytes[..most - here]]
    }

    /// Takes so many of the oldest bytes out.
    pub fn drop_oldest(&mut self, bytes: usize) {
        let bytes = bytes.min(self.used);
        self.used -= bytes;
        self.first = (self.first + bytes) % self.bytes.len();
    }

    /// The free places that are filled next, at most so many, in up to two pieces.
    pub fn places(&mut self, most: usize) -> [&mut [u8]; 2] {
        let most = most.min(self.free());
        let at = (self.first + self.used) % self.bytes.len();
        let (before, behind) = self.bytes.split_at_mut(at);
        let here = most.min(behind.len());
        [&mut behind[..here], &mut before[..most - here]]
    }

    /// So many of these places are filled.
    pub fn note_filled(&mut self, bytes: usize) {
        self.used += bytes.min(self.free());
    }
}
