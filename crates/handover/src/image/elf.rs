// SPDX-License-Identifier: MIT OR Apache-2.0
//! An image's ELF file: its segments, checked, and where its note is.

use arrayvec::ArrayVec;
use object::Endianness;
use object::elf::{EM_X86_64, ET_EXEC, FileHeader64, NoteType, PF_W, PF_X, PT_LOAD, PT_NOTE, ProgramHeader64};
use object::read::elf::{FileHeader as _, ProgramHeader as _};
use units::PAGE_BYTES;
use zerocopy::FromBytes as _;

use super::note::{NOTE_OWNER, NOTE_TYPE, Note, NoteTail};
use crate::error::ImageError;

/// Link address less the ELF file's physical address, for all but the code that runs before paging.
pub const IMAGE_BASE: u64 = 0xffff_ffff_8000_0000;
/// The ELF file's physical address of the slot's first byte.
pub const LINKED_AT: u64 = 2 << 20;
/// A packed image unpacks itself from so many bytes behind its end, at most: memory that is then cleared.
pub const PACKED_MARGIN_BYTES: usize = 16 << 10;
/// The most memory that an image may want.
pub const MAX_IMAGE_BYTES: u64 = 64 << 20;
/// Segments that an image may have; it has four.
pub(super) const MAX_SEGMENTS: usize = 16;
const ELF_CLASS_64: u8 = 2;

/// One stretch of the file and where in the slot it goes. Both have been checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) file_offset: usize,
    pub(super) file_bytes: usize,
    /// From the slot's first byte.
    pub(super) place: u64,
    pub(super) memory_bytes: u64,
    pub(super) is_code: bool,
    pub(super) is_high: bool,
}

impl Segment {
    pub(super) fn file_end(&self) -> usize {
        self.file_offset + self.file_bytes
    }
}

pub(super) type Read = (ArrayVec<Segment, MAX_SEGMENTS>, NoteState);

/// Progress of the search for the note.
pub(super) enum NoteState {
    /// There is none in the bytes that have been read.
    Missing,
    /// It lies behind the bytes that are there.
    Ahead,
    /// The note, and the fields behind it.
    Found(Note, NoteTail),
}

pub(super) fn read_header(bytes: &[u8]) -> Result<&FileHeader64<Endianness>, ImageError> {
    if bytes.get(4).is_some_and(|class| *class != ELF_CLASS_64) {
        return Err(ImageError::BadElf("it is not of the 64-bit class"));
    }
    let header = FileHeader64::<Endianness>::parse(bytes)
        .map_err(|_| ImageError::BadElf("the file header is damaged or cut off"))?;
    let endian = header.endian().map_err(|_| ImageError::BadElf("its byte order is unknown"))?;
    let machine = header.e_machine(endian);
    if endian != Endianness::Little || machine != EM_X86_64 {
        return Err(ImageError::WrongMachine(machine.0));
    }
    if header.e_type(endian) != ET_EXEC {
        return Err(ImageError::BadElf("it is not linked for a fixed address"));
    }
    Ok(header)
}

/// Reads a file of `file_bytes`, of which `bytes` are the first.
pub(super) fn read(bytes: &[u8], file_bytes: u64) -> Result<Read, ImageError> {
    let (header, endian) = (read_header(bytes)?, Endianness::Little);
    let programs =
        header.program_headers(endian, bytes).map_err(|_| ImageError::BadElf("the program headers are cut off"))?;
    let (mut segments, mut note) = (ArrayVec::<Segment, MAX_SEGMENTS>::new(), NoteState::Missing);
    for program in programs {
        match program.p_type(endian) {
            PT_LOAD => add_segment(&mut segments, program, file_bytes)?,
            PT_NOTE if matches!(note, NoteState::Missing) => note = find_note(program, bytes, file_bytes)?,
            _ => {}
        }
    }
    sort::by_key(&mut segments, |segment| (segment.file_offset, segment.file_bytes));
    if let Some([_, second]) = segments.array_windows().find(|[first, second]| second.file_offset < first.file_end()) {
        let address = LINKED_AT + second.place;
        return Err(ImageError::BadSegment { address, reason: "shares bytes of the file with another" });
    }
    Ok((segments, note))
}

fn add_segment(
    segments: &mut ArrayVec<Segment, MAX_SEGMENTS>,
    program: &ProgramHeader64<Endianness>,
    present_bytes: u64,
) -> Result<(), ImageError> {
    let endian = Endianness::Little;
    let (file_offset, file_bytes) = (program.p_offset(endian), program.p_filesz(endian));
    let (address, linear, memory_bytes) = (program.p_paddr(endian), program.p_vaddr(endian), program.p_memsz(endian));
    let bad = |reason| ImageError::BadSegment { address, reason };
    if memory_bytes == 0 {
        return Ok(());
    }
    if file_bytes > memory_bytes {
        return Err(bad("has more bytes in the file than in memory"));
    }
    let needed_bytes = file_offset.saturating_add(file_bytes);
    if needed_bytes > present_bytes {
        return Err(ImageError::Truncated { needed_bytes, present_bytes });
    }
    let flags = program.p_flags(endian);
    if flags.0 & PF_W.0 != 0 && flags.0 & PF_X.0 != 0 {
        return Err(bad("can be written and executed"));
    }
    let place = address.checked_sub(LINKED_AT).ok_or(bad("lies below the link address of images"))?;
    if !place.is_multiple_of(PAGE_BYTES) {
        return Err(bad("does not begin at a page"));
    }
    let is_high = linear.wrapping_sub(IMAGE_BASE) == address;
    if !is_high && linear != address {
        return Err(bad("is linked at another address than images are"));
    }
    let end = place.saturating_add(memory_bytes);
    if end > MAX_IMAGE_BYTES {
        return Err(ImageError::TooLarge { bytes: end });
    }
    let overlaps = |other: &Segment| place < other.place + other.memory_bytes && other.place < end;
    if segments.iter().any(overlaps) {
        return Err(bad("overlaps another"));
    }
    let is_code = flags.0 & PF_X.0 != 0;
    // One without bytes in the file is nowhere in it.
    let file_offset = if file_bytes == 0 { 0 } else { file_offset as usize };
    let file_bytes = file_bytes as usize;
    let segment = Segment { file_offset, file_bytes, place, memory_bytes, is_code, is_high };
    segments.try_push(segment).map_err(|_| ImageError::BadElf("it has more than 16 segments"))
}

fn find_note(program: &ProgramHeader64<Endianness>, bytes: &[u8], file_bytes: u64) -> Result<NoteState, ImageError> {
    let endian = Endianness::Little;
    let end = program.p_offset(endian).saturating_add(program.p_filesz(endian));
    if end > bytes.len() as u64 && end <= file_bytes {
        return Ok(NoteState::Ahead);
    }
    let damaged = |_| ImageError::BadElf("its notes are damaged");
    let Some(mut notes) = program.notes(endian, bytes).map_err(damaged)? else { return Ok(NoteState::Missing) };
    while let Some(note) = notes.next().map_err(damaged)? {
        if note.name() == NOTE_OWNER && note.n_type(endian) == NoteType(NOTE_TYPE) {
            let (note, more) = Note::read_from_prefix(note.desc()).map_err(|_| ImageError::BadNote)?;
            return Ok(NoteState::Found(note, NoteTail::read(more)));
        }
    }
    Ok(NoteState::Missing)
}
