// SPDX-License-Identifier: MIT OR Apache-2.0
//! SHA-256 (FIPS 180-4), piece by piece, with the rounds behind a trait.

/// Bytes of a block.
pub const BLOCK_BYTES: usize = 64;
/// Input of one compression.
pub type Block = [u8; BLOCK_BYTES];
/// A SHA-256 digest.
pub type Digest = [u8; 32];

/// FIPS 180-4, section 5.3.3.
const INITIAL: [u32; 8] =
    [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];
/// Bytes at the end of the last block that state how long the message was.
const LENGTH_BYTES: usize = 8;
/// Follows the message.
const END_OF_MESSAGE: u8 = 0x80;

/// The engine that carries out the rounds.
pub trait Compress {
    /// Takes whole blocks into the state, in their order.
    fn compress(&mut self, state: &mut [u32; 8], blocks: &[Block]);
}

/// The rounds in plain code.
#[derive(Clone, Copy, Debug, Default)]
pub struct Portable;

impl Compress for Portable {
    fn compress(&mut self, state: &mut [u32; 8], blocks: &[Block]) {
        sha2::block_api::compress256(state, blocks);
    }
}

/// A SHA-256 that is under way.
#[derive(Clone, Debug)]
pub struct Sha256<E> {
    engine: E,
    state: [u32; 8],
    /// The beginning of a block that is not whole yet.
    partial: Block,
    partial_bytes: usize,
    bytes: u64,
}

impl<E: Compress> Sha256<E> {
    /// Begins a digest.
    pub fn new(engine: E) -> Self {
        Self { engine, state: INITIAL, partial: [0; BLOCK_BYTES], partial_bytes: 0, bytes: 0 }
    }

    /// Returns the number of bytes taken so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes the next bytes.
    pub fn update(&mut self, mut bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        if self.partial_bytes > 0 {
            let (head, rest) = bytes.split_at(bytes.len().min(BLOCK_BYTES - self.partial_bytes));
            self.keep(head);
            bytes = rest;
        }
        let (blocks, rest) = bytes.as_chunks();
        self.engine.compress(&mut self.state, blocks);
        self.keep(rest);
    }

    /// Returns the digest of all that was taken.
    pub fn finish(mut self) -> Digest {
        let bits = (self.bytes * 8).to_be_bytes();
        self.keep(&[END_OF_MESSAGE]);
        let zeroes = [0; BLOCK_BYTES];
        if self.partial_bytes > BLOCK_BYTES - LENGTH_BYTES {
            self.keep(&zeroes[self.partial_bytes..]);
        }
        self.keep(&zeroes[self.partial_bytes..BLOCK_BYTES - LENGTH_BYTES]);
        self.keep(&bits);
        let mut digest = Digest::default();
        for (place, word) in digest.as_chunks_mut().0.iter_mut().zip(self.state) {
            *place = word.to_be_bytes();
        }
        digest
    }

    /// Adds to the block that is not whole yet, at most what is missing of it.
    fn keep(&mut self, bytes: &[u8]) {
        let end = self.partial_bytes + bytes.len();
        self.partial[self.partial_bytes..end].copy_from_slice(bytes);
        self.partial_bytes = end % BLOCK_BYTES;
        if end == BLOCK_BYTES {
            self.engine.compress(&mut self.state, core::slice::from_ref(&self.partial));
        }
    }
}
