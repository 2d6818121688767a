// SPDX-License-Identifier: MIT OR Apache-2.0
//! Layout of a ring's memory: words of 64 bits, little endian. It describes itself, so that a later image that is given
//! the frames can go on in it.
//!
//! | word | content |
//! |---|---|
//! | 0 | [`MAGIC`] |
//! | 1 | version (16 bits), words of this header (16), CPU (32) |
//! | 2 | how many records there is room for: a power of two |
//! | 3 | the number that the next record gets |
//! | 4–7 | 0 |
//!
//! Records follow, two words each: the stamp in ticks, and from the low end the name's number (12 bits), the kind (4),
//! the argument (24), the low bits of the record's own number (24). A second word of 0 is that of no record.

/// `BATNTIME`.
pub const MAGIC: u64 = u64::from_le_bytes(*b"BATNTIME");
/// Version of this layout.
pub(crate) const VERSION: u64 = 1;
/// Words of a ring's header.
pub const HEADER_WORDS: usize = 8;
/// Words of a record.
pub const RECORD_WORDS: usize = 2;

pub(crate) const HEADER_MAGIC: usize = 0;
pub(crate) const HEADER_IDENTITY: usize = 1;
pub(crate) const HEADER_CAPACITY: usize = 2;
pub(crate) const HEADER_HEAD: usize = 3;

const NAME_BITS: u32 = 12;
const KIND_BITS: u32 = 4;
const ARGUMENT_BITS: u32 = 24;
const KIND_AT: u32 = NAME_BITS;
const ARGUMENT_AT: u32 = KIND_AT + KIND_BITS;
const NUMBER_AT: u32 = ARGUMENT_AT + ARGUMENT_BITS;
const NAME_MASK: u64 = (1 << NAME_BITS) - 1;

/// The largest argument that a record holds; a larger one is written as this.
pub const MAXIMUM_ARGUMENT: u32 = (1 << ARGUMENT_BITS) - 1;

/// Version, header's size and CPU.
pub(crate) const fn identity(cpu: u32) -> u64 {
    VERSION | (HEADER_WORDS as u64) << 16 | (cpu as u64) << 32
}

/// Kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Something happened.
    Instant = 1,
    /// A span begins.
    Begin = 2,
    /// The span of this name and argument that began last, and has not ended, ends.
    End = 3,
}

impl Kind {
    /// The one with this number.
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::Instant),
            2 => Some(Self::Begin),
            3 => Some(Self::End),
            _ => None,
        }
    }
}

/// A record as it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Time in ticks of the CPU's time stamp counter.
    pub ticks: u64,
    /// A [`Name`](crate::Name)'s number; one that this release does not know, perhaps.
    pub name: u16,
    /// Its kind.
    pub kind: Kind,
    /// Its argument; the name gives the meaning ([`Argument`](crate::Argument)).
    pub argument: u32,
}

/// A record's second word.
#[inline]
pub(crate) const fn pack(number: u64, kind: Kind, name: u16, argument: u32) -> u64 {
    let argument = if argument > MAXIMUM_ARGUMENT { MAXIMUM_ARGUMENT } else { argument };
    number << NUMBER_AT | (argument as u64) << ARGUMENT_AT | (kind as u64) << KIND_AT | name as u64 & NAME_MASK
}

/// The record of this number, if the words are its.
pub(crate) fn unpack(number: u64, ticks: u64, word: u64) -> Option<Point> {
    let kind = Kind::from_number((word >> KIND_AT & ((1 << KIND_BITS) - 1)) as u8)?;
    let is_of_number = word >> NUMBER_AT == number << NUMBER_AT >> NUMBER_AT;
    let name = (word & NAME_MASK) as u16;
    is_of_number.then_some(Point { ticks, name, kind, argument: (word >> ARGUMENT_AT) as u32 & MAXIMUM_ARGUMENT })
}
