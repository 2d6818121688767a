// SPDX-License-Identifier: MIT OR Apache-2.0
//! Going through the segments of a chain, piece after piece.

use ::virtio::{Outside, Segment};

use super::source::Source;

/// A place in a chain's segments.
#[derive(Clone, Copy, Debug)]
pub(in crate::devices) struct Place<'a> {
    segments: &'a [Segment],
    /// Bytes of the first segment that have been passed.
    passed: u32,
}

impl<'a> Place<'a> {
    /// The place behind so many bytes.
    pub fn at(segments: &'a [Segment], bytes: usize) -> Self {
        let mut place = Self { segments, passed: 0 };
        place.pass(bytes);
        place
    }

    /// Goes on behind so many bytes.
    pub fn pass(&mut self, bytes: usize) {
        let mut left = bytes;
        while let Some((_, most)) = self.piece(left) {
            self.advance(most);
            left -= most;
        }
    }

    /// Reads the bytes that follow; bytes that are not there stay unchanged.
    pub fn read(&mut self, into: &mut [u8], source: &dyn Source) -> Result<(), Outside> {
        let mut done = 0;
        while let Some((address, bytes)) = self.piece(into.len() - done) {
            source.read(address, &mut into[done..done + bytes])?;
            self.advance(bytes);
            done += bytes;
        }
        Ok(())
    }

    /// The bytes that follow in one piece, `most` at most; `None` if there are none.
    pub fn piece(&mut self, most: usize) -> Option<(u64, usize)> {
        while let Some((first, behind)) = self.segments.split_first() {
            let left = first.bytes.saturating_sub(self.passed);
            if left > 0 {
                let bytes = most.min(left as usize);
                return (bytes > 0).then_some((first.address + u64::from(self.passed), bytes));
            }
            (self.segments, self.passed) = (behind, 0);
        }
        None
    }

    /// Goes on behind so many bytes of the piece.
    pub fn advance(&mut self, bytes: usize) {
        self.passed += bytes as u32;
    }
}
