// SPDX-License-Identifier: MIT OR Apache-2.0
//! A block with codes of its own, and what its symbols cost.

use seal::inflate::{DISTANCES, END_OF_BLOCK, LENGTH_ORDER, LITERALS, distance_of, length_of};

use super::huffman::{codes, lengths};
use super::matches::MAX_LENGTH;
use super::token::Token;

/// The longest code of a symbol, and of a code's length.
const LONGEST: u8 = 15;
const LONGEST_OF_LENGTHS: u8 = 7;
/// The literals and lengths that a block may use.
const USED_LITERALS: usize = 286;
/// The unit of costs is a sixteenth of a bit.
const SIXTEENTHS: u64 = 16;

/// The cost of each symbol, in sixteenths of bits, with the bits behind it.
pub(super) struct Costs {
    literals: Vec<u64>,
    /// By the length itself.
    lengths: Vec<u64>,
    distances: Vec<u64>,
}

impl Default for Costs {
    /// Before anything is known.
    fn default() -> Self {
        let literals = (0..LITERALS).map(|symbol| if symbol < 256 { 8 } else { 7 } * SIXTEENTHS).collect();
        Self::new(literals, vec![5 * SIXTEENTHS; DISTANCES])
    }
}

impl Costs {
    fn new(literals: Vec<u64>, distances: Vec<u64>) -> Self {
        let of_length = |length| {
            let symbol = length_symbol(length);
            literals[usize::from(257 + symbol)] + u64::from(length_of(symbol).1) * SIXTEENTHS
        };
        Self { lengths: (0..=MAX_LENGTH as u16).map(of_length).collect(), literals, distances }
    }

    /// The costs in a block of these tokens.
    pub fn of(tokens: &[Token]) -> Self {
        let (literals, distances) = counts(tokens);
        Self::new(information(&literals), information(&distances))
    }

    pub fn literal(&self, literal: u8) -> u64 {
        self.literals[usize::from(literal)]
    }

    pub fn length(&self, length: u16) -> u64 {
        self.lengths[usize::from(length)]
    }

    pub fn distance(&self, distance: u16) -> u64 {
        let symbol = distance_symbol(distance);
        self.distances[usize::from(symbol)] + u64::from(distance_of(symbol).1) * SIXTEENTHS
    }
}

/// Returns each symbol's information, by how often it occurs. A symbol that does not occur counts as half of one that
/// does once.
fn information(counts: &[u32]) -> Vec<u64> {
    let total: u32 = counts.iter().sum();
    let bits = |count: u32| (f64::from(total.max(1)) / f64::from(count).max(0.5)).log2().max(0.5);
    counts.iter().map(|&count| (bits(count) * SIXTEENTHS as f64) as u64).collect()
}

fn counts(tokens: &[Token]) -> (Vec<u32>, Vec<u32>) {
    let (mut literals, mut distances) = (vec![0; USED_LITERALS], vec![0; DISTANCES]);
    literals[usize::from(END_OF_BLOCK)] = 1;
    for token in tokens {
        if token.distance == 0 {
            literals[usize::from(token.literal)] += 1;
        } else {
            literals[usize::from(257 + length_symbol(token.length))] += 1;
            distances[usize::from(distance_symbol(token.distance))] += 1;
        }
    }
    (literals, distances)
}

fn length_symbol(length: u16) -> u16 {
    match length {
        0..=10 => length.saturating_sub(3),
        258.. => 28,
        _ => {
            let rest = length - 3;
            let bits = rest.ilog2() as u16;
            4 * (bits - 1) + (rest >> (bits - 2) & 3)
        }
    }
}

fn distance_symbol(distance: u16) -> u16 {
    match distance {
        0..=4 => distance.saturating_sub(1),
        _ => {
            let rest = distance - 1;
            let bits = rest.ilog2() as u16;
            2 * bits + (rest >> (bits - 1) & 1)
        }
    }
}

/// Bits, from the lowest of each byte.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    pending: u64,
    count: u32,
}

impl Bits {
    fn put(&mut self, value: u16, bits: u32) {
        self.pending |= u64::from(value) << self.count;
        self.count += bits;
        while self.count >= 8 {
            self.bytes.push(self.pending as u8);
            self.pending >>= 8;
            self.count -= 8;
        }
    }

    fn finish(mut self) -> Vec<u8> {
        if self.count > 0 {
            self.bytes.push(self.pending as u8);
        }
        self.bytes
    }
}

/// Writes tokens as one block, the last of its stream.
pub(super) fn write(tokens: &[Token]) -> Vec<u8> {
    let (literals, distances) = counts(tokens);
    let literal_lengths = lengths(&literals, LONGEST);
    let distance_lengths = lengths(&distances, LONGEST);
    let mut bits = Bits::default();
    bits.put(1, 1);
    bits.put(2, 2);
    write_codes(&mut bits, &literal_lengths, &distance_lengths);
    let (literal_codes, distance_codes) = (codes(&literal_lengths), codes(&distance_lengths));
    let literal = |bits: &mut Bits, symbol: u16| {
        bits.put(literal_codes[usize::from(symbol)], literal_lengths[usize::from(symbol)].into());
    };
    for token in tokens {
        if token.distance == 0 {
            literal(&mut bits, token.literal.into());
            continue;
        }
        let symbol = length_symbol(token.length);
        literal(&mut bits, 257 + symbol);
        let (least, extra) = length_of(symbol);
        bits.put(token.length - least, extra);
        let symbol = distance_symbol(token.distance);
        bits.put(distance_codes[usize::from(symbol)], distance_lengths[usize::from(symbol)].into());
        let (least, extra) = distance_of(symbol);
        bits.put(token.distance - least, extra);
    }
    literal(&mut bits, END_OF_BLOCK);
    bits.finish()
}

/// Writes the lengths of both codes, in a code of their own.
fn write_codes(bits: &mut Bits, literals: &[u8], distances: &[u8]) {
    let used = |lengths: &[u8], least: usize| {
        lengths.iter().rposition(|&length| length != 0).map_or(least, |last| (last + 1).max(least))
    };
    let (literal_count, distance_count) = (used(literals, 257), used(distances, 1));
    let stated = runs(&[&literals[..literal_count], &distances[..distance_count]].concat());
    let mut counts = vec![0; LENGTH_ORDER.len()];
    stated.iter().for_each(|(symbol, ..)| counts[usize::from(*symbol)] += 1);
    let of_lengths = lengths(&counts, LONGEST_OF_LENGTHS);
    let codes = codes(&of_lengths);
    let last = LENGTH_ORDER.iter().rposition(|&symbol| of_lengths[symbol] != 0).unwrap_or(3).max(3);
    bits.put((literal_count - 257) as u16, 5);
    bits.put((distance_count - 1) as u16, 5);
    bits.put((last + 1 - 4) as u16, 4);
    LENGTH_ORDER[..=last].iter().for_each(|&symbol| bits.put(of_lengths[symbol].into(), 3));
    for (symbol, extra, extra_bits) in stated {
        bits.put(codes[usize::from(symbol)], of_lengths[usize::from(symbol)].into());
        bits.put(extra, extra_bits);
    }
}

/// Lengths as symbols, with the bits behind each: runs are stated by their number.
fn runs(lengths: &[u8]) -> Vec<(u16, u16, u32)> {
    let mut stated = Vec::new();
    for run in lengths.chunk_by(|one, other| one == other) {
        let (length, mut left) = (u16::from(run[0]), run.len());
        if length != 0 {
            stated.push((length, 0, 0));
            left -= 1;
        }
        while left >= 3 {
            let (symbol, most, least, bits) = match length {
                0 if left >= 11 => (18, 138, 11, 7),
                0 => (17, 10, 3, 3),
                _ => (16, 6, 3, 2),
            };
            let taken = left.min(most);
            stated.push((symbol, (taken - least) as u16, bits));
            left -= taken;
        }
        (0..left).for_each(|_| stated.push((length, 0, 0)));
    }
    stated
}
