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

use block::Costs;
use matches::{Finder, Match};
use token::Token;

/// Bytes that are tried at first, for each of the limit: code is packed to about half.
const FIRST_SPAN: usize = 2;
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

/// Packs the pieces of a file, one after the other.
#[derive(Debug)]
pub struct Packer<'f> {
    file: &'f [u8],
    finder: Finder,
}

impl<'f> Packer<'f> {
    /// A packer at the beginning of a file.
    pub fn new(file: &'f [u8]) -> Self {
        Self { file, finder: Finder::new() }
    }

    /// Packs as much of the file from `at` on as `limit` packed bytes hold. `None` where that is no more than the bytes
    /// as they are. A piece that does not begin where the one before has ended takes longer.
    pub fn piece(&mut self, at: usize, limit: usize) -> Option<Piece> {
        let left = (self.file.len() - at).min(MAX_SPAN_BYTES);
        let mut span = (FIRST_SPAN * limit).min(left);
        loop {
            let piece = self.pack(at, span, limit)?;
            if piece.bytes < span || span == left {
                return Some(piece).filter(|piece| piece.packed.len() < piece.bytes);
            }
            span = (span + span / 2).min(left);
        }
    }

    /// Packs a span, or the beginning of it that fits.
    fn pack(&mut self, at: usize, span: usize, limit: usize) -> Option<Piece> {
        let matches: Vec<&[Match]> = self.finder.matches(self.file, at..at + span).collect();
        let (mut costs, mut best) = (Costs::default(), None::<Piece>);
        for _ in 0..ROUNDS {
            let tokens = parse::cheapest(&self.file[at..at + span], &matches, &costs);
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
}

/// Returns how many tokens from the first one on fit, and their block. Between a number that fits and one that does not
/// the next is tried where it fits exactly if all tokens are alike.
fn longest_that_fits(tokens: &[Token], limit: usize) -> Option<(usize, Vec<u8>)> {
    let mut best = (0, block::write(&[]));
    let (mut over, mut over_bytes) = (tokens.len() + 1, None);
    let mut count = tokens.len();
    while best.0 + 1 < over && best.1.len() < limit {
        let block = block::write(&tokens[..count]);
        if block.len() <= limit {
            best = (count, block);
        } else {
            (over, over_bytes) = (count, Some(block.len()));
        }
        let Some(over_bytes) = over_bytes else { break };
        let room = (limit - best.1.len()) * (over - best.0) / (over_bytes - best.1.len());
        count = best.0 + room.clamp(1, (over - best.0).saturating_sub(1).max(1));
    }
    (best.0 > 0).then_some(best)
}
