// SPDX-License-Identifier: MIT OR Apache-2.0
//! The image's file in the form that is shipped: what follows its first page is packed, and the code in that page
//! unpacks it where a loader has put it (`hypervisor/src/arch/boot.S`). As with the kernels of Linux, only what boots
//! is in this form: the tool unpacks an image before it checks it, sends it, or puts it into a bundle.
//!
//! ```text
//! plain    headers │ first page │ content: code, constants, data │ sections, seal
//! packed   headers │ first page │ content as one LZ4 block       │ all the rest as another │ trailer
//! ```

mod elf;

use handover::image::{LINKED_AT, MAX_IMAGE_BYTES, PACKED_MARGIN_BYTES};
use lz4_flex::block::{compress, decompress};
use object::Endianness;
use object::elf::{PT_LOAD, ProgramHeader64};
use object::read::elf::ProgramHeader as _;
use thiserror::Error;
use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Before the length of the block, in the first page (`boot.S`).
const MARK: &[u8] = b"BatonLZ4";
const TRAILER_MARK: [u8; 8] = *b"BatonPkd";
pub(super) const PAGE: usize = 4096;

/// The reason why a file cannot be packed or unpacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PackedError {
    /// It is no image, or a damaged one.
    #[error("this is no image of Baton that can be packed ({0}); take target/baton.elf, or build it with `make`")]
    BadImage(&'static str),
    /// It is packed, and damaged.
    #[error("this packed image is damaged ({0}); copy it again")]
    Damaged(&'static str),
}

/// The end of a packed file.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Trailer {
    /// Bytes of the content and of the rest, packed and plain.
    content: [U32; 2],
    rest: [U32; 2],
    /// Bytes of the rest that come before the content.
    head: U32,
    /// CRC-32 of the plain file.
    crc: U32,
    mark: [u8; 8],
}

/// Where the parts of a plain file are.
struct Parts {
    /// The first page in the file, and its bytes.
    first: (usize, usize),
    /// The content in the file, from the second page on.
    content: core::ops::Range<usize>,
    /// Bytes of memory from the second page on.
    memory_bytes: u64,
}

/// Returns an image's file in the packed form.
///
/// # Errors
/// [`PackedError::BadImage`].
pub fn packed(plain: &[u8]) -> Result<Vec<u8>, PackedError> {
    let bad = PackedError::BadImage;
    let parts = Parts::of(plain)?;
    let content = &plain[parts.content.clone()];
    let block = compress(content);
    if !unpacks_in_place(&block, content) {
        return Err(bad("its content does not unpack where it lies"));
    }
    let mut first = plain[parts.first.0..][..parts.first.1].to_vec();
    let at = first.windows(MARK.len()).position(|bytes| bytes == MARK).ok_or(bad("it does not unpack itself"))?;
    let place = first.get_mut(at + MARK.len()..).and_then(|bytes| bytes.first_chunk_mut());
    *place.ok_or(bad("its first page ends early"))? = (block.len() as u32).to_le_bytes();
    let rest = [&plain[..parts.content.start], &plain[parts.content.end..]].concat();
    let mut file = elf::headers(plain, &first, block.len() as u64, parts.memory_bytes).ok_or(bad("its headers"))?;
    let packed_rest = compress(&rest);
    let pair = |packed: &[u8], plain: &[u8]| [packed, plain].map(|bytes| U32::new(bytes.len() as u32));
    let trailer = Trailer {
        content: pair(&block, content),
        rest: pair(&packed_rest, &rest),
        head: U32::new(parts.content.start as u32),
        crc: U32::new(checksum::CRC_32.checksum(plain)),
        mark: TRAILER_MARK,
    };
    file.extend(block);
    file.extend(packed_rest);
    file.extend(trailer.as_bytes());
    Ok(file)
}

/// Returns the plain file of a packed one; `None`: it is not packed.
///
/// # Errors
/// [`PackedError::Damaged`].
pub fn unpacked(file: &[u8]) -> Result<Option<Vec<u8>>, PackedError> {
    let bad = PackedError::Damaged;
    let Ok((before, trailer)) = Trailer::read_from_suffix(file) else { return Ok(None) };
    if trailer.mark != TRAILER_MARK {
        return Ok(None);
    }
    let [content, content_plain] = trailer.content.map(|bytes| bytes.get() as usize);
    let [rest, rest_plain] = trailer.rest.map(|bytes| bytes.get() as usize);
    if content_plain.max(rest_plain) as u64 > MAX_IMAGE_BYTES {
        return Err(bad("its lengths"));
    }
    let (before, rest) = before.len().checked_sub(rest).map(|at| before.split_at(at)).ok_or(bad("its lengths"))?;
    let at = before.len().checked_sub(content).ok_or(bad("its lengths"))?;
    let content = decompress(&before[at..], content_plain).map_err(|_| bad("its content"))?;
    let mut rest = decompress(rest, rest_plain).map_err(|_| bad("what is beside its content"))?;
    let head = trailer.head.get() as usize;
    if content.len() != content_plain || rest.len() != rest_plain || head > rest.len() {
        return Err(bad("its lengths"));
    }
    rest.splice(head..head, content);
    if checksum::CRC_32.checksum(&rest) != trailer.crc.get() {
        return Err(bad("its checksum"));
    }
    Ok(Some(rest))
}

impl Parts {
    fn of(plain: &[u8]) -> Result<Self, PackedError> {
        let bad = PackedError::BadImage;
        let (endian, programs) = elf::programs(plain).ok_or(bad("no ELF file"))?;
        let mut loads = programs.iter().filter(|program| program.p_type(endian) == PT_LOAD);
        let range = |program: &ProgramHeader64<Endianness>| {
            let (start, bytes) = (program.p_offset(endian) as usize, program.p_filesz(endian) as usize);
            start.checked_add(bytes).filter(|end| *end <= plain.len()).map(|end| start..end)
        };
        let boot = loads.next().filter(|boot| boot.p_paddr(endian) == LINKED_AT).ok_or(bad("no first page"))?;
        let first = range(boot).filter(|range| range.len() <= PAGE).ok_or(bad("its first page"))?;
        let (mut content, mut memory_end) = (None::<core::ops::Range<usize>>, 0);
        for load in loads {
            let range = range(load).ok_or(bad("a segment is cut off"))?;
            let start = content.as_ref().map_or(range.start, |all| all.start);
            let place = load.p_paddr(endian).checked_sub(LINKED_AT + PAGE as u64);
            if range.start.checked_sub(start).map(|at| at as u64) != place {
                return Err(bad("its segments are not in a row"));
            }
            memory_end = memory_end.max(load.p_paddr(endian).saturating_add(load.p_memsz(endian)));
            content = Some(start..range.end);
        }
        let content = content.ok_or(bad("it has no content"))?;
        let memory_bytes = memory_end.saturating_sub(LINKED_AT + PAGE as u64);
        if memory_bytes < (content.len() + PACKED_MARGIN_BYTES) as u64 {
            return Err(bad("it has too little memory to unpack itself"));
        }
        Ok(Self { first: (first.start, first.len()), content, memory_bytes })
    }
}

/// Does what `boot.S` does, in the same place: the block ends so many bytes behind the content.
fn unpacks_in_place(block: &[u8], content: &[u8]) -> bool {
    let mut memory = vec![0; content.len() + PACKED_MARGIN_BYTES];
    let Some(mut from) = memory.len().checked_sub(block.len()) else { return false };
    memory[from..].copy_from_slice(block);
    unpack(&mut memory, &mut from, content.len()).is_some() && memory[..content.len()] == *content
}

/// Unpacks a block at `from` of a memory to its beginning, so many bytes; `None` if that overwrites what it has not
/// read, or reaches out of it.
fn unpack(memory: &mut [u8], from: &mut usize, bytes: usize) -> Option<()> {
    let mut to = 0;
    let next = |memory: &[u8], from: &mut usize| {
        let byte = *memory.get(*from)?;
        *from += 1;
        Some(usize::from(byte))
    };
    let length = |memory: &[u8], from: &mut usize, short: usize| {
        let mut all = short;
        let mut more = short == 15;
        while more {
            let byte = next(memory, from)?;
            (all, more) = (all + byte, byte == 255);
        }
        Some(all)
    };
    loop {
        let token = next(memory, from)?;
        let literals = length(memory, from, token >> 4)?;
        memory.get(..*from + literals)?;
        memory.copy_within(*from..*from + literals, to);
        (*from, to) = (*from + literals, to + literals);
        if to >= bytes {
            return (to == bytes).then_some(());
        }
        let distance = next(memory, from)? | next(memory, from)? << 8;
        let matched = length(memory, from, token & 15)? + 4;
        if distance == 0 || distance > to || to + matched > *from {
            return None;
        }
        for _ in 0..matched {
            memory[to] = memory[to - distance];
            to += 1;
        }
    }
}

#[cfg(test)]
mod tests;
