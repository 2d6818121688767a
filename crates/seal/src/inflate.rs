// SPDX-License-Identifier: MIT OR Apache-2.0
//! Unpacks a piece of a file: DEFLATE (RFC 1951) with a window of 64 KiB, in one call, without memory of its own.
//!
//! The distances' symbols 30 and 31, which DEFLATE leaves unused, have 14 further bits each, as the series goes on and
//! as Deflate64 has it. So a stream of DEFLATE is one of these, too.
//!
//! The bytes unpacked before are the window: pieces refer to the pieces before them, and yet each stands alone. Codes
//! are decoded bit by bit, by counting: tables would be faster, and larger than all of this.

/// The longest code in bits.
const MAX_CODE_BITS: usize = 15;
/// Symbols of literals and lengths.
pub const LITERALS: usize = 288;
/// Symbols of distances.
pub const DISTANCES: usize = 32;
/// The furthest place that a match refers to.
pub const WINDOW_BYTES: usize = (64 << 10) - 1;
/// The symbol that ends a block.
pub const END_OF_BLOCK: u16 = 256;
/// The order in which a block states the lengths of the codes for code lengths.
pub const LENGTH_ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/// The bytes are no packed piece, or unpack to more than there is room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corrupt;

/// Unpacks `packed` behind the first `from` bytes of `memory`; returns the end of the unpacked bytes.
///
/// # Errors
/// It is no DEFLATE stream, refers to bytes before the first, or does not fit.
pub fn inflate(packed: &[u8], memory: &mut [u8], from: usize) -> Result<usize, Corrupt> {
    let mut output = Output { memory, end: from };
    let mut input = Bits { bytes: packed, place: 0 };
    loop {
        let is_last = input.take(1)? == 1;
        match input.take(2)? {
            0 => stored(&mut input, &mut output)?,
            1 => compressed(&mut input, &mut output, &fixed())?,
            2 => {
                let codes = stated_codes(&mut input)?;
                compressed(&mut input, &mut output, &codes)?;
            }
            _ => return Err(Corrupt),
        }
        if is_last {
            return Ok(output.end);
        }
    }
}

/// Returns the least length of a length's symbol, counted from 257, and the number of further bits that state it.
pub const fn length_of(symbol: u16) -> (u16, u32) {
    match symbol {
        0..8 => (symbol + 3, 0),
        28 => (258, 0),
        _ => {
            let extra = (symbol / 4 - 1) as u32;
            (((4 + symbol % 4) << extra) + 3, extra)
        }
    }
}

/// Returns the least distance of a distance's symbol, and the number of further bits that state it.
pub const fn distance_of(symbol: u16) -> (u16, u32) {
    match symbol {
        0..4 => (symbol + 1, 0),
        _ => {
            let extra = (symbol / 2 - 1) as u32;
            (((2 + symbol % 2) << extra) + 1, extra)
        }
    }
}

/// The packed bits, from the lowest of each byte.
struct Bits<'a> {
    bytes: &'a [u8],
    /// In bits.
    place: usize,
}

impl Bits<'_> {
    fn bit(&mut self) -> Result<u16, Corrupt> {
        let byte = self.bytes.get(self.place / 8).ok_or(Corrupt)?;
        let bit = byte >> (self.place % 8) & 1;
        self.place += 1;
        Ok(bit.into())
    }

    fn take(&mut self, count: u32) -> Result<u16, Corrupt> {
        (0..count).try_fold(0, |value, at| Ok(value | self.bit()? << at))
    }

    /// Returns the next whole byte.
    fn byte(&mut self) -> Result<u8, Corrupt> {
        let at = self.place.div_ceil(8);
        self.place = (at + 1) * 8;
        self.bytes.get(at).copied().ok_or(Corrupt)
    }
}

struct Output<'a> {
    memory: &'a mut [u8],
    end: usize,
}

impl Output<'_> {
    fn push(&mut self, byte: u8) -> Result<(), Corrupt> {
        *self.memory.get_mut(self.end).ok_or(Corrupt)? = byte;
        self.end += 1;
        Ok(())
    }

    fn repeat(&mut self, length: u16, distance: usize) -> Result<(), Corrupt> {
        for _ in 0..length {
            let from = self.end.checked_sub(distance).ok_or(Corrupt)?;
            let byte = *self.memory.get(from).ok_or(Corrupt)?;
            self.push(byte)?;
        }
        Ok(())
    }
}

/// A canonical Huffman code: how many codes there are of each length, and their symbols in order.
struct Code<const N: usize> {
    counts: [u16; MAX_CODE_BITS + 1],
    symbols: [u16; N],
}

impl<const N: usize> Code<N> {
    fn new(lengths: &[u8]) -> Result<Self, Corrupt> {
        let (mut counts, mut symbols) = ([0u16; MAX_CODE_BITS + 1], [0; N]);
        for &length in lengths {
            *counts.get_mut(usize::from(length)).ok_or(Corrupt)? += 1;
        }
        counts[0] = 0;
        let (mut left, mut starts) = (1u32, [0u16; MAX_CODE_BITS + 2]);
        for bits in 1..=MAX_CODE_BITS {
            left = (left << 1).checked_sub(counts[bits].into()).ok_or(Corrupt)?;
            starts[bits + 1] = starts[bits] + counts[bits];
        }
        for (symbol, &length) in lengths.iter().enumerate().filter(|(_, length)| **length != 0) {
            let start = &mut starts[usize::from(length)];
            *symbols.get_mut(usize::from(*start)).ok_or(Corrupt)? = symbol as u16;
            *start += 1;
        }
        Ok(Self { counts, symbols })
    }

    fn symbol(&self, input: &mut Bits<'_>) -> Result<u16, Corrupt> {
        let (mut code, mut first, mut index) = (0u16, 0u16, 0u16);
        for count in &self.counts[1..] {
            code |= input.bit()?;
            match code.checked_sub(first) {
                Some(place) if place < *count => {
                    return self.symbols.get(usize::from(index + place)).copied().ok_or(Corrupt);
                }
                _ => {}
            }
            (index, first, code) = (index + count, (first + count) << 1, code << 1);
        }
        Err(Corrupt)
    }
}

/// The codes of one block. Both numbers of symbols are bounded by the bits that state them.
struct Codes {
    literals: Code<LITERALS>,
    distances: Code<DISTANCES>,
}

fn fixed() -> Codes {
    let length = |symbol| match symbol {
        0..144 => 8,
        144..256 => 9,
        256..280 => 7,
        _ => 8,
    };
    let lengths: [u8; LITERALS] = core::array::from_fn(length);
    let none = |_| Codes {
        literals: Code { counts: [0; MAX_CODE_BITS + 1], symbols: [0; LITERALS] },
        distances: Code { counts: [0; MAX_CODE_BITS + 1], symbols: [0; DISTANCES] },
    };
    let codes = Code::new(&lengths).and_then(|literals| Ok(Codes { literals, distances: Code::new(&[5; DISTANCES])? }));
    codes.unwrap_or_else(none)
}

fn stated_codes(input: &mut Bits<'_>) -> Result<Codes, Corrupt> {
    let (literals, distances) = (usize::from(input.take(5)?) + 257, usize::from(input.take(5)?) + 1);
    let stated = usize::from(input.take(4)?) + 4;
    if literals > 286 {
        return Err(Corrupt);
    }
    let mut of_lengths = [0; LENGTH_ORDER.len()];
    for &place in &LENGTH_ORDER[..stated] {
        of_lengths[place] = input.take(3)? as u8;
    }
    let code = Code::<{ LENGTH_ORDER.len() }>::new(&of_lengths)?;
    let (mut lengths, mut count) = ([0u8; LITERALS + DISTANCES], 0);
    while count < literals + distances {
        let symbol = code.symbol(input)?;
        let (length, times) = match symbol {
            0..16 => (symbol as u8, 1),
            16 => (
                *count.checked_sub(1).and_then(|before: usize| lengths.get(before)).ok_or(Corrupt)?,
                3 + input.take(2)?,
            ),
            17 => (0, 3 + input.take(3)?),
            _ => (0, 11 + input.take(7)?),
        };
        let end = count + usize::from(times);
        if end > literals + distances {
            return Err(Corrupt);
        }
        lengths[count..end].fill(length);
        count = end;
    }
    Ok(Codes {
        literals: Code::new(&lengths[..literals])?,
        distances: Code::new(&lengths[literals..literals + distances])?,
    })
}

fn compressed(input: &mut Bits<'_>, output: &mut Output<'_>, codes: &Codes) -> Result<(), Corrupt> {
    loop {
        match codes.literals.symbol(input)? {
            literal @ 0..END_OF_BLOCK => output.push(literal as u8)?,
            END_OF_BLOCK => return Ok(()),
            symbol @ 257..286 => {
                let (least, extra) = length_of(symbol - 257);
                let length = least + input.take(extra)?;
                let (least, extra) = distance_of(codes.distances.symbol(input)?);
                output.repeat(length, usize::from(least) + usize::from(input.take(extra)?))?;
            }
            _ => return Err(Corrupt),
        }
    }
}

fn stored(input: &mut Bits<'_>, output: &mut Output<'_>) -> Result<(), Corrupt> {
    let mut half = || Ok(u16::from(input.byte()?) | u16::from(input.byte()?) << 8);
    let (length, inverse) = (half()?, half()?);
    if length != !inverse {
        return Err(Corrupt);
    }
    (0..length).try_for_each(|_| output.push(input.byte()?))
}
