// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bytes that wait for a socket to take them.

use std::collections::VecDeque;
use std::io::{self, Write};

use wire::{EncodeError, Frame, MAX_FRAME_BYTES, encode};

/// The maximum number of bytes that wait for one socket: the output of a busy console in a minute.
const MAX_BYTES: usize = 4 << 20;

/// Bytes that wait for a socket to take them.
#[derive(Default)]
pub(crate) struct Outbox {
    bytes: VecDeque<u8>,
}

impl Outbox {
    /// Adds bytes; returns `false` if there are too many.
    pub fn push(&mut self, bytes: &[u8]) -> bool {
        let fits = self.bytes.len() + bytes.len() <= MAX_BYTES;
        if fits {
            self.bytes.extend(bytes);
        }
        fits
    }

    /// Returns whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Discards all bytes.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// Writes as many bytes as `socket` takes without waiting; returns their number.
    pub fn drain_to(&mut self, socket: &mut impl Write) -> io::Result<usize> {
        let mut written = 0;
        while !self.bytes.is_empty() {
            match socket.write(self.bytes.as_slices().0) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    self.bytes.drain(..count);
                    written += count;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(written)
    }

    /// Removes and returns all bytes.
    #[cfg(test)]
    pub fn take(&mut self) -> Vec<u8> {
        self.bytes.drain(..).collect()
    }
}

/// Encodes a message for a stream.
pub(super) fn encoded(frame: &Frame<'_>) -> Result<Vec<u8>, EncodeError> {
    encode(frame, &mut [0; MAX_FRAME_BYTES]).map(<[u8]>::to_vec)
}
