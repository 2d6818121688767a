// SPDX-License-Identifier: MIT OR Apache-2.0
//! Blocks: pieces of state that are written after the record, all at the same time, each by the CPU that holds its
//! contents.
//!
//! A block is whole pages. The first one has a [`BlockHeader`] and one structure of [`crate::state`]; items of any
//! number begin with the second page. Memory for it is set aside and zeroed before guests stop; in between, a block
//! takes some stores for its structure and a sum.
//!
//! The sums guard against damage, not against malice: with 64-bit words `w`, `a += w` and `b += a` (Fletcher's checksum
//! without the modulus). Any change within one word is found for certain. CRC-32, which the record has, would take ten
//! times as long.

use core::fmt;
use core::marker::PhantomData;

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes as _, IntoBytes as _};

use crate::state::{BlockHeader, BlockKind, BlockState};
use crate::{OLDEST_VERSION, VERSION};

/// Magic number at the start of a block.
pub const MAGIC: [u8; 8] = *b"BatnBlok";
/// Bytes before a block's tail.
pub const HEAD_BYTES: usize = 4096;
const HEADER_BYTES: usize = size_of::<BlockHeader>();
const WORD_BYTES: usize = 8;

/// Owner of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The guest's number; 0 for the host's.
    pub guest: u32,
    /// The vCPU's number; 0 for all else.
    pub vcpu: u32,
}

/// The reason why a block cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockError {
    /// The memory for it is too small: bytes that it takes.
    TooSmall(usize),
    /// It does not begin with a block's header: it was never finished.
    Unfinished,
    /// Of a version that is not read here.
    OtherVersion(u32),
    /// It holds something else: a [`BlockKind`]'s number.
    OtherKind(u32),
    /// It belongs to another owner.
    OtherOwner(Owner),
    /// It was damaged.
    BadSum,
}

impl fmt::Display for BlockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooSmall(bytes) => write!(f, "it takes {bytes} bytes, and there are fewer"),
            Self::Unfinished => f.write_str("it was never finished"),
            Self::OtherVersion(version) => {
                write!(f, "it has version {version}, and versions {OLDEST_VERSION} to {VERSION} are read")
            }
            Self::OtherKind(kind) => write!(f, "it holds something else: kind {kind}"),
            Self::OtherOwner(Owner { guest, vcpu }) => write!(f, "it is of guest {guest}, vCPU {vcpu}"),
            Self::BadSum => f.write_str("its sum is wrong"),
        }
    }
}

impl core::error::Error for BlockError {}

/// A block while it is written.
#[derive(Debug)]
pub struct BlockMut<'a, T> {
    bytes: &'a mut [u8],
    owner: Owner,
    version: u32,
    holds: PhantomData<T>,
}

impl<'a, T: BlockState> BlockMut<'a, T> {
    /// A block in memory that is all its own, for a reader of this version. Its structure is zero, the rest unchanged.
    ///
    /// # Errors
    /// [`BlockError::TooSmall`], or [`BlockError::OtherVersion`] for one that is not written.
    pub fn begin(bytes: &'a mut [u8], owner: Owner, version: u32) -> Result<Self, BlockError> {
        if !(OLDEST_VERSION..=VERSION).contains(&version) || version < T::SINCE {
            return Err(BlockError::OtherVersion(version));
        }
        let head = bytes.get_mut(..HEAD_BYTES).ok_or(BlockError::TooSmall(HEAD_BYTES))?;
        // The rest of the page is not read by any reader, and guests wait meanwhile.
        head[..HEADER_BYTES + size_of::<T>()].fill(0);
        Ok(Self { bytes, owner, version, holds: PhantomData })
    }

    /// The structure and the tail, to be filled.
    ///
    /// # Errors
    /// [`BlockError::TooSmall`] never comes from a block that was begun.
    #[inline]
    pub fn parts(&mut self) -> Result<(&mut T, &mut [u8]), BlockError> {
        let small = BlockError::TooSmall(HEAD_BYTES);
        let (head, tail) = self.bytes.split_at_mut_checked(HEAD_BYTES).ok_or(small)?;
        let (state, _) = T::mut_from_prefix(head.get_mut(HEADER_BYTES..).ok_or(small)?).map_err(|_| small)?;
        Ok((state, tail))
    }

    /// Finishes the block, with so many bytes of its tail in use. It can be filled and finished again.
    ///
    /// # Errors
    /// [`BlockError::TooSmall`] if there are fewer.
    #[inline]
    pub fn finish(&mut self, tail_bytes: usize) -> Result<(), BlockError> {
        let small = BlockError::TooSmall(HEAD_BYTES.saturating_add(tail_bytes));
        let header = BlockHeader {
            magic: MAGIC,
            version: U32::new(self.version),
            kind: U32::new(T::KIND as u32),
            guest: U32::new(self.owner.guest),
            vcpu: U32::new(self.owner.vcpu),
            tail_bytes: U64::new(tail_bytes as u64),
            sum: [U64::new(0); 2],
        };
        let (head, tail) = self.bytes.split_at_mut_checked(HEAD_BYTES).ok_or(small)?;
        let (place, rest) = head.split_at_mut_checked(HEADER_BYTES).ok_or(small)?;
        let state = rest.get(..T::bytes_in(self.version)).ok_or(small)?;
        let sum = sums(&header, state, tail.get(..tail_bytes).ok_or(small)?);
        place.copy_from_slice(BlockHeader { sum, ..header }.as_bytes());
        Ok(())
    }
}

/// Reads a block: its structure, and the bytes of its tail that are in use.
///
/// # Errors
/// [`BlockError`] with the first problem.
pub fn open<T: BlockState>(bytes: &[u8], owner: Owner) -> Result<(T, &[u8]), BlockError> {
    let mut widened = None;
    let (state, tail) = open_in_place(bytes, owner, &mut widened)?;
    Ok((*state, tail))
}

/// Reads a block as [`open`] does, and copies its structure only if the block's version lacks fields of it: then
/// `widened` holds it, with zero in these fields.
///
/// # Errors
/// As [`open`].
#[inline]
pub fn open_in_place<'s, 'a: 's, T: BlockState + 's>(
    bytes: &'a [u8],
    owner: Owner,
    widened: &'s mut Option<T>,
) -> Result<(&'s T, &'a [u8]), BlockError> {
    let small = BlockError::TooSmall(HEAD_BYTES);
    let (head, tail) = bytes.split_at_checked(HEAD_BYTES).ok_or(small)?;
    let (header, rest) = BlockHeader::ref_from_prefix(head).map_err(|_| small)?;
    let (version, found) = (header.version.get(), Owner { guest: header.guest.get(), vcpu: header.vcpu.get() });
    if header.magic != MAGIC {
        return Err(BlockError::Unfinished);
    }
    if !(OLDEST_VERSION..=VERSION).contains(&version) || version < T::SINCE {
        return Err(BlockError::OtherVersion(version));
    }
    if header.kind.get() != T::KIND as u32 {
        return Err(BlockError::OtherKind(header.kind.get()));
    }
    if found != owner {
        return Err(BlockError::OtherOwner(found));
    }
    let tail_bytes = usize::try_from(header.tail_bytes.get()).ok();
    let tail = tail_bytes.and_then(|tail_bytes| tail.get(..tail_bytes)).ok_or(BlockError::BadSum)?;
    let state = rest.get(..T::bytes_in(version)).ok_or(small)?;
    if sums(&BlockHeader { sum: [U64::new(0); 2], ..*header }, state, tail) != header.sum {
        return Err(BlockError::BadSum);
    }
    let state = match T::ref_from_bytes(state) {
        Ok(state) => state,
        Err(_) => widened.insert(T::read_in(version, state).ok_or(small)?),
    };
    Ok((state, tail))
}

/// Returns the kind and the owner of a block, as its header gives them.
pub fn identify(bytes: &[u8]) -> Option<(BlockKind, Owner)> {
    let (header, _) = BlockHeader::ref_from_prefix(bytes).ok()?;
    let owner = Owner { guest: header.guest.get(), vcpu: header.vcpu.get() };
    (header.magic == MAGIC).then_some((BlockKind::from_number(header.kind.get())?, owner))
}

/// Parts the first of several blocks, one behind the other, from those after it; `None` if it is cut off.
pub fn split_first(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (header, _) = BlockHeader::ref_from_prefix(bytes).ok()?;
    let tail_bytes = usize::try_from(header.tail_bytes.get()).ok()?;
    bytes.split_at_checked(HEAD_BYTES.checked_add(tail_bytes)?)
}

fn sums(header: &BlockHeader, state: &[u8], tail: &[u8]) -> [U64; 2] {
    let mut sums = Sums::default();
    for part in [header.as_bytes(), state, tail] {
        sums.add(part);
    }
    [U64::new(sums.a), U64::new(sums.b)]
}

#[derive(Default)]
struct Sums {
    a: u64,
    b: u64,
}

impl Sums {
    /// Adds a part's words; a last one that is not whole, or is not there, is filled up with zeroes.
    fn add(&mut self, part: &[u8]) {
        let (words, rest) = part.as_chunks();
        // Guests wait meanwhile, and with a word at a time half of the instructions are the loop's own.
        let (fours, words) = words.as_chunks();
        for [first, second, third, fourth] in fours {
            self.add_word(*first);
            self.add_word(*second);
            self.add_word(*third);
            self.add_word(*fourth);
        }
        words.iter().for_each(|word| self.add_word(*word));
        let mut last = [0; WORD_BYTES];
        if !rest.is_empty() {
            last[..rest.len()].copy_from_slice(rest);
        }
        self.add_word(last);
    }

    #[inline]
    fn add_word(&mut self, word: [u8; WORD_BYTES]) {
        self.a = self.a.wrapping_add(u64::from_le_bytes(word));
        self.b = self.b.wrapping_add(self.a);
    }
}

#[cfg(test)]
#[path = "block_tests.rs"]
mod tests;
