// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packs pieces of a file for a slow line, as [`seal::inflate`] unpacks them: DEFLATE (RFC 1951) with a window of
//! 64 KiB, each piece a stream of its own, with the file before it as its window. So a host unpacks a piece as soon as
//! it has it, and goes on after a break with any piece.
//!
//! On a serial line a byte costs more time than thousands of instructions here. So the parse is an optimal one under
//! the costs of the parse before it, a few times over, as in Zopfli. No crate does that with a window given beforehand.
#![warn(missing_docs)]

mod block;
mod huffman;
mod matches;
mod parse;
#[cfg(test)]
mod tests;
mod token;

use seal::inflate::WINDOW_BYTES;

use block::Costs;

/// Bytes that are tried at first, for each of the limit: code and text are packed to somewhat less than half.
const FIRST_SPAN: usize = 3;
/// The most bytes of a piece: a host unpacks one between two turns of its guests.
pub const MAX_SPAN_BYTES: usize = 64 << 10;
/// The number of parses, each with the costs of the one before.
const ROUNDS: usize = 4;

/// A packed piece of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its length, unpacked.
    pub bytes: usize,
    /// The DEFLATE stream.
    pub packed: Vec<u8>,
}

/// Packs as much of `file` from `at` on as `limit` packed bytes hold. `None` where that is no more than the bytes as
/// they are.
pub fn pack(file: &[u8], at: usize, limit: usize) -> Option<Piece> {
    let mut span_bytes = (FIRST_SPAN * limit).min(MAX_SPAN_BYTES);
    loop {
        let span = span_bytes.min(file.len() - at);
        let piece = pack_span(&file[at.saturating_sub(WINDOW_BYTES)..at + span], at.min(WINDOW_BYTES), limit)?;
        if piece.bytes < span || span < span_bytes || span_bytes == MAX_SPAN_BYTES {
            return Some(piece).filter(|piece| piece.packed.len() < piece.bytes);
        }
        span_bytes = (span_bytes * 2).min(MAX_SPAN_BYTES);
    }
}

/// The same for the bytes behind the first `from`, which are the window.
fn pack_span(bytes: &[u8], from: usize, limit: usize) -> Option<Piece> {
    let matches = matches::find(bytes, from);
    let (mut costs, mut best) = (Costs::default(), None::<Piece>);
    for _ in 0..ROUNDS {
        let tokens = parse::cheapest(&bytes[from..], &matches, &costs);
        let (count, packed) = longest_that_fits(&tokens, limit)?;
        let length = tokens[..count].iter().map(|token| usize::from(token.length)).sum();
        costs = Costs::of(&tokens[..count]);
        let is_better = best.as_ref().is_none_or(|best| (length, best.packed.len()) > (best.bytes, packed.len()));
        if is_better {
            best = Some(Piece { bytes: length, packed });
        }
    }
    best
}

/// Returns how many tokens from the first one on fit, and their block.
fn longest_that_fits(tokens: &[token::Token], limit: usize) -> Option<(usize, Vec<u8>)> {
    let fitting = |count: usize| Some(block::write(&tokens[..count])).filter(|block| block.len() <= limit);
    let (mut best, mut low, mut high) = (None, 1, tokens.len());
    while low <= high {
        let middle = if best.is_none() && high == tokens.len() { high } else { low.midpoint(high) };
        match fitting(middle) {
            Some(block) => (best, low) = (Some((middle, block)), middle + 1),
            None => high = middle - 1,
        }
    }
    best
}
