// SPDX-License-Identifier: MIT OR Apache-2.0
//! ELF kernels: which bytes go where, and the PVH entry if there is one.

use arrayvec::ArrayVec;
use object::Endianness;
use object::elf::{EM_386, EM_X86_64, FileHeader32, FileHeader64, NoteType, PT_LOAD, PT_NOTE};
use object::read::elf::{FileHeader, ProgramHeader};

use super::{LoadError, place};
use crate::addr::Gpa;
use crate::memory::GuestMemory;

/// Segments that a kernel may have; Linux has five.
const MAX_SEGMENTS: usize = 32;
/// XEN_ELFNOTE_PHYS32_ENTRY, the PVH entry point.
const PHYS32_ENTRY: NoteType = NoteType(18);
const PHYS32_OWNER: &[u8] = b"Xen";

const MAGIC: &[u8] = b"\x7fELF";
const CLASS_OFFSET: usize = 4;
const CLASS_32: u8 = 1;

/// The segments of a kernel.
pub(super) type Segments = ArrayVec<Segment, MAX_SEGMENTS>;

/// One stretch of the file and where it goes; the rest of its memory is zero. Its file range has been checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub file_offset: usize,
    pub file_bytes: usize,
    pub physical: u64,
    pub linear: u64,
    pub memory_bytes: u64,
}

impl Segment {
    /// Returns where its memory ends.
    pub fn end(&self) -> u64 {
        self.physical.saturating_add(self.memory_bytes)
    }
}

/// The parts of an ELF file that a loader needs.
pub(super) struct Elf {
    pub segments: Segments,
    /// The entry point in the file; often a linear address.
    pub entry: u64,
    pub pvh_entry: Option<u32>,
}

pub(super) fn is_elf(image: &[u8]) -> bool {
    image.starts_with(MAGIC)
}

/// Reads an ELF file of either class.
pub(super) fn parse(image: &[u8]) -> Result<Elf, LoadError> {
    match image.get(CLASS_OFFSET) {
        Some(&CLASS_32) => parse_class::<FileHeader32<Endianness>>(image),
        _ => parse_class::<FileHeader64<Endianness>>(image),
    }
}

fn parse_class<H: FileHeader<Endian = Endianness>>(image: &[u8]) -> Result<Elf, LoadError> {
    let bad = |reason| LoadError::BadElf { reason };
    let header = H::parse(image).map_err(|_| bad("the file header is damaged or cut off"))?;
    let endian = header.endian().map_err(|_| bad("its byte order is unknown"))?;
    if endian != Endianness::Little || !matches!(header.e_machine(endian), EM_386 | EM_X86_64) {
        return Err(bad("it is not for x86"));
    }
    let programs = header.program_headers(endian, image).map_err(|_| bad("the program headers are cut off"))?;
    let mut elf = Elf { segments: ArrayVec::new(), entry: header.e_entry(endian).into(), pvh_entry: None };
    for program in programs {
        match program.p_type(endian) {
            PT_LOAD => add_segment(&mut elf.segments, program, image)?,
            PT_NOTE if elf.pvh_entry.is_none() => elf.pvh_entry = pvh_entry(program, image)?,
            _ => {}
        }
    }
    Ok(elf)
}

fn add_segment<P: ProgramHeader<Endian = Endianness>>(
    segments: &mut Segments,
    program: &P,
    image: &[u8],
) -> Result<(), LoadError> {
    let endian = Endianness::Little;
    let (offset, file_bytes) = (program.p_offset(endian).into(), program.p_filesz(endian).into());
    let memory_bytes = program.p_memsz(endian).into();
    if memory_bytes == 0 {
        return Ok(());
    }
    if file_bytes > memory_bytes {
        return Err(LoadError::BadElf { reason: "a segment has more bytes in the file than in memory" });
    }
    let needed_bytes = u64::saturating_add(offset, file_bytes);
    if needed_bytes > image.len() as u64 {
        return Err(LoadError::Truncated { part: "a segment", needed_bytes, present_bytes: image.len() as u64 });
    }
    let segment = Segment {
        file_offset: offset as usize,
        file_bytes: file_bytes as usize,
        physical: program.p_paddr(endian).into(),
        linear: program.p_vaddr(endian).into(),
        memory_bytes,
    };
    segments.try_push(segment).map_err(|_| LoadError::BadElf { reason: "it has more than 32 segments" })
}

/// The PVH entry among the notes of a segment: 32 bits, or 64 as Linux writes it.
fn pvh_entry<P: ProgramHeader<Endian = Endianness>>(program: &P, image: &[u8]) -> Result<Option<u32>, LoadError> {
    let endian = Endianness::Little;
    let damaged = |_| LoadError::BadElf { reason: "its notes are damaged" };
    let Some(mut notes) = program.notes(endian, image).map_err(damaged)? else { return Ok(None) };
    while let Some(note) = notes.next().map_err(damaged)? {
        if note.name() != PHYS32_OWNER || note.n_type(endian) != PHYS32_ENTRY {
            continue;
        }
        let entry = match *note.desc() {
            [a, b, c, d] | [a, b, c, d, 0, 0, 0, 0] => u32::from_le_bytes([a, b, c, d]),
            _ => return Err(LoadError::BadElf { reason: "its PVH note holds no 32-bit address" }),
        };
        return Ok(Some(entry));
    }
    Ok(None)
}

/// Checks where every segment lies; returns the end of the highest.
pub(super) fn check_segments(memory: &impl GuestMemory, segments: &[Segment]) -> Result<u64, LoadError> {
    let mut kernel_end = 0;
    for (index, segment) in segments.iter().enumerate() {
        let end = place::check_kernel(memory, segment.physical, segment.memory_bytes)?;
        let overlaps = |other: &Segment| segment.physical < other.end() && other.physical < end;
        if segments[..index].iter().any(overlaps) {
            return Err(LoadError::SegmentsOverlap { address: Gpa(segment.physical) });
        }
        kernel_end = kernel_end.max(end);
    }
    Ok(kernel_end)
}

/// Copies all segments, which have been checked.
pub(super) fn load_segments(memory: &impl GuestMemory, image: &[u8], segments: &[Segment]) -> Result<(), LoadError> {
    for segment in segments {
        memory.write(Gpa(segment.physical), &image[segment.file_offset..][..segment.file_bytes])?;
        let file_bytes = segment.file_bytes as u64;
        place::zero(memory, Gpa(segment.physical + file_bytes), segment.memory_bytes - file_bytes)?;
    }
    Ok(())
}

/// Refuses a physical entry point that is in no segment.
pub(super) fn check_entry(segments: &[Segment], entry: u32) -> Result<(), LoadError> {
    let entry = u64::from(entry);
    let contains =
        |segment: &Segment| entry.checked_sub(segment.physical).is_some_and(|offset| offset < segment.memory_bytes);
    match segments.iter().any(contains) {
        true => Ok(()),
        false => Err(LoadError::EntryOutside { address: entry }),
    }
}
