// SPDX-License-Identifier: MIT OR Apache-2.0
//! Unpacks a file that comes in pieces of one LZMA2 stream with a window of 256 KiB.

use core::fmt;

use lzma_rust2::{Action, Lzma2Stream};

/// The furthest place that a match refers to, in bytes. As much memory is taken for it, and some 20 KB.
pub const WINDOW_BYTES: u32 = 256 << 10;

/// The bytes are no packed piece, or unpack to another length; or there is no memory for the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corrupt;

/// Unpacks one piece after the other.
pub struct Unpacker(Lzma2Stream);

impl Unpacker {
    /// Unpacks the next piece, which has exactly as many bytes as there is `place`.
    ///
    /// # Errors
    /// It has not; the stream cannot go on.
    pub fn unpack(&mut self, packed: &[u8], place: &mut [u8]) -> Result<(), Corrupt> {
        let bytes = self.unpack_some(packed, place)?;
        if bytes == place.len() { Ok(()) } else { Err(Corrupt) }
    }

    /// Unpacks the next piece, which has no more bytes than there is `place`; returns how many.
    ///
    /// # Errors
    /// It has more, or is damaged; the stream cannot go on.
    pub fn unpack_some(&mut self, mut packed: &[u8], place: &mut [u8]) -> Result<usize, Corrupt> {
        let mut bytes = 0;
        loop {
            let rest = place.get_mut(bytes..).ok_or(Corrupt)?;
            let step = self.0.process(packed, rest, Action::Run).map_err(|_| Corrupt)?;
            if step.bytes_consumed == 0 && step.bytes_produced == 0 {
                return if packed.is_empty() && !self.0.has_output() { Ok(bytes) } else { Err(Corrupt) };
            }
            packed = packed.get(step.bytes_consumed..).ok_or(Corrupt)?;
            bytes += step.bytes_produced;
        }
    }
}

impl Default for Unpacker {
    fn default() -> Self {
        Self(Lzma2Stream::new(WINDOW_BYTES))
    }
}

impl fmt::Debug for Unpacker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unpacker").field("unpacked", &self.0.total_out()).finish_non_exhaustive()
    }
}
