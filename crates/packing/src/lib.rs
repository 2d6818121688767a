// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packs pieces of a file for a slow line, as [`seal::Unpacker`] unpacks them: one LZMA2 stream, cut where a piece is
//! full. So a host unpacks a piece as soon as it has it. After a break another stream begins where the host has got to.
#![warn(missing_docs)]

#[cfg(test)]
mod tests;

use std::io::Write as _;
use std::mem;

use lzma_rust2::{EncodeMode, Lzma2Options, Lzma2Writer, LzmaOptions, MfType};
use seal::{Unpacker, WINDOW_BYTES};

/// The most bytes that a piece unpacks to: a host does so between two turns of its guests.
pub const MAX_SPAN_BYTES: usize = 64 << 10;
/// The most bytes of a file in a chunk. A piece has bytes of as many chunks as unpack to no more than a span.
const MAX_CHUNK_BYTES: usize = MAX_SPAN_BYTES / 2;

/// The least limit: every piece has at least one byte of the file.
pub const MIN_PIECE_BYTES: usize = 64;

/// A packed piece of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its length, unpacked.
    pub bytes: usize,
    /// It begins a stream.
    pub begins: bool,
    /// Its part of the stream.
    pub packed: Vec<u8>,
}

/// The cost of packing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// As few bytes as can be: for images.
    Most,
    /// Little time, and more bytes: for guests' memory, of which there is much.
    Little,
}

/// Packs the pieces of a file, one after the other.
pub struct Packer<'f> {
    file: &'f [u8],
    /// The most bytes of a packed piece.
    limit: usize,
    writer: Lzma2Writer<Vec<u8>>,
    /// The place behind the last chunk.
    packed: usize,
    chunk: Chunk,
    /// Unpacks the pieces as a host does.
    host: Unpacker,
    /// The next piece is the first one.
    begins: bool,
}

/// The rest of a chunk.
#[derive(Default)]
struct Chunk {
    rest: Vec<u8>,
    /// Bytes of the file in the whole of it.
    span: usize,
}

impl<'f> Packer<'f> {
    /// A packer of what is behind the first `at` bytes of a file, for pieces of at most `limit` packed bytes:
    /// [`MIN_PIECE_BYTES`] or more.
    pub fn new(file: &'f [u8], at: usize, limit: usize, effort: Effort) -> Self {
        let (writer, host) = (Lzma2Writer::new(Vec::new(), options(effort)), Unpacker::default());
        let limit = limit.max(MIN_PIECE_BYTES);
        Self { file, limit, writer, packed: at, chunk: Chunk::default(), host, begins: true }
    }

    /// Packs as much of the file as the limit permits; nothing behind its end.
    pub fn piece(&mut self) -> Piece {
        let (packed, mut place) = (self.next_bytes(), [0; MAX_SPAN_BYTES]);
        let bytes = self.host.unpack_some(&packed, &mut place).expect("what was packed can be unpacked");
        Piece { bytes, begins: mem::take(&mut self.begins), packed }
    }

    /// Returns the stream's next bytes, as many as are one piece.
    fn next_bytes(&mut self) -> Vec<u8> {
        let (mut bytes, mut span) = (Vec::new(), 0);
        while bytes.len() < self.limit {
            if self.chunk.rest.is_empty() {
                self.pack_chunk();
            }
            span += self.chunk.span;
            if self.chunk.rest.is_empty() || span > MAX_SPAN_BYTES {
                break;
            }
            let count = self.chunk.rest.len().min(self.limit - bytes.len());
            bytes.extend(self.chunk.rest.drain(..count));
        }
        bytes
    }

    /// Packs the next bytes of the file, if there are more.
    fn pack_chunk(&mut self) {
        let content = &self.file[self.packed..self.file.len().min(self.packed + MAX_CHUNK_BYTES)];
        let written = self.writer.write_all(content).and_then(|()| self.writer.flush());
        written.expect("a vector takes all bytes");
        self.packed += content.len();
        self.chunk = Chunk { rest: mem::take(self.writer.inner_mut()), span: content.len() };
    }
}

fn options(effort: Effort) -> Lzma2Options {
    let most = (EncodeMode::Normal, LzmaOptions::NICE_LEN_MAX, MfType::Bt4, 0);
    let (mode, nice, finder, depth) =
        if effort == Effort::Most { most } else { (EncodeMode::Fast, 32, MfType::Hc4, 4) };
    // These pack images best.
    let (lc, lp, pb) = (4, 0, 0);
    let lzma_options = LzmaOptions::new(WINDOW_BYTES, lc, lp, pb, mode, nice, finder, depth);
    Lzma2Options { lzma_options, chunk_size: None }
}
