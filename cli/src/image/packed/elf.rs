// SPDX-License-Identifier: MIT OR Apache-2.0
//! The headers of a packed image's ELF file.

use object::Endianness;
use object::elf::{FileHeader64, PF_R, PF_W, PF_X, PT_LOAD, PT_NOTE, ProgramHeader64};
use object::read::elf::{FileHeader as _, ProgramHeader as _};
use zerocopy::IntoBytes as _;

use super::PAGE;

/// Bytes of a header, and of a segment's.
const HEADER_BYTES: usize = 64;
const PROGRAM_BYTES: usize = 56;
/// In the file's header: where segments and sections are, their numbers, and that of the names' section.
const PROGRAMS_AT: usize = 32;
const SECTIONS_AT: usize = 40;
const PROGRAM_COUNT_AT: usize = 56;
const SECTION_COUNT_AT: usize = 60;
const NAMES_AT: usize = 62;

/// The segments of an ELF file.
pub(super) fn programs(file: &[u8]) -> Option<(Endianness, &[ProgramHeader64<Endianness>])> {
    let header = FileHeader64::<Endianness>::parse(file).ok()?;
    let endian = header.endian().ok()?;
    Some((endian, header.program_headers(endian, file).ok()?))
}

/// A segment: type, flags, where it is in the file and in memory, its bytes there.
struct Segment {
    kind: u32,
    flags: u32,
    offset: u64,
    addresses: [u64; 2],
    bytes: [u64; 2],
    alignment: u64,
}

impl Segment {
    fn bytes(&self) -> [u8; PROGRAM_BYTES] {
        let words = [self.offset, self.addresses[0], self.addresses[1], self.bytes[0], self.bytes[1], self.alignment];
        let mut all = [0; PROGRAM_BYTES];
        all[..4].copy_from_slice(&self.kind.to_le_bytes());
        all[4..8].copy_from_slice(&self.flags.to_le_bytes());
        all[8..].copy_from_slice(words.map(u64::to_le_bytes).as_bytes());
        all
    }
}

/// The headers of the packed file, and its first page: it is followed by a block of so many bytes, which is loaded to
/// the second page, and has so much memory from there on.
pub(super) fn headers(plain: &[u8], first: &[u8], block_bytes: u64, memory_bytes: u64) -> Option<Vec<u8>> {
    let (endian, programs) = programs(plain)?;
    let boot = programs.iter().find(|program| program.p_type(endian) == PT_LOAD)?;
    let next = programs.iter().filter(|program| program.p_type(endian) == PT_LOAD).nth(1)?;
    let (boot_at, page) = (boot.p_offset(endian), PAGE as u64);
    let mut segments = vec![Segment {
        kind: PT_LOAD.0,
        flags: (PF_R | PF_X).0,
        offset: page,
        addresses: [boot.p_vaddr(endian), boot.p_paddr(endian)],
        bytes: [boot.p_filesz(endian), boot.p_memsz(endian)],
        alignment: page,
    }];
    for note in programs.iter().filter(|program| program.p_type(endian) == PT_NOTE) {
        segments.push(Segment {
            kind: PT_NOTE.0,
            flags: PF_R.0,
            offset: note.p_offset(endian).checked_sub(boot_at)? + page,
            addresses: [note.p_vaddr(endian), note.p_paddr(endian)],
            bytes: [note.p_filesz(endian), note.p_memsz(endian)],
            alignment: note.p_align(endian),
        });
    }
    segments.push(Segment {
        kind: PT_LOAD.0,
        flags: (PF_R | PF_W | PF_X).0,
        offset: 2 * page,
        addresses: [next.p_vaddr(endian), next.p_paddr(endian)],
        bytes: [block_bytes, memory_bytes],
        alignment: page,
    });
    let mut file = plain.get(..HEADER_BYTES)?.to_vec();
    let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
    put(PROGRAMS_AT, &(HEADER_BYTES as u64).to_le_bytes());
    put(SECTIONS_AT, &[0; 8]);
    put(PROGRAM_COUNT_AT, &(segments.len() as u16).to_le_bytes());
    put(SECTION_COUNT_AT, &[0; 2]);
    put(NAMES_AT, &[0; 2]);
    segments.iter().for_each(|segment| file.extend(segment.bytes()));
    file.resize(PAGE, 0);
    file.extend(first);
    file.resize(2 * PAGE, 0);
    Some(file)
}
