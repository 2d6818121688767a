// SPDX-License-Identifier: MIT OR Apache-2.0
//! The image as a bzImage, for kexec, GRUB's `linux` and iPXE: the setup sectors that the image carries, and behind
//! them its segments as they lie in memory.

use object::Endianness;
use object::elf::{FileHeader64, PT_LOAD};
use object::read::elf::{FileHeader as _, ProgramHeader as _, SectionHeader as _};
use thiserror::Error;

/// The section of the setup sectors, which is in no segment.
const SETUP_SECTION: &[u8] = b".setup";
const SECTOR_BYTES: usize = 512;
/// In the setup header: the number of setup sectors behind the first, the length of the rest in paragraphs, and "HdrS".
const SECTORS_AT: usize = 0x1f1;
const PARAGRAPHS_AT: usize = 0x1f4;
const MAGIC_AT: usize = 0x202;
const PARAGRAPH_BYTES: usize = 16;
/// Address of the ELF file's first segment.
const LINKED_AT: u64 = 2 << 20;
/// More than any image has.
const MAXIMUM_BYTES: u64 = 64 << 20;

/// The reason why a file cannot be made into a bzImage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum LinuxImageError {
    /// It is no image, or a damaged one.
    #[error("this is no image of Baton, or a damaged one ({0}); take target/baton.elf, or build it with `make`")]
    BadElf(&'static str),
    /// It is older than the Linux entries.
    #[error("this image has no Linux entry (section .setup); build it again with `make`")]
    NoSetup,
}

/// Returns a bzImage of the image `elf`.
///
/// # Errors
/// [`LinuxImageError`] with the defect of `elf`.
pub fn bzimage(elf: &[u8]) -> Result<Vec<u8>, LinuxImageError> {
    let setup = setup_of(elf)?;
    let bytes = checked_setup(setup).ok_or(LinuxImageError::BadElf("its setup is damaged"))?;
    let mut memory = loaded(elf)?;
    if memory.len() > bytes {
        return Err(LinuxImageError::BadElf("its setup states another length"));
    }
    memory.resize(bytes, 0);
    Ok([setup, &memory].concat())
}

/// Returns a bzImage of an image in its packed form; `plain` is the other one.
///
/// # Errors
/// [`LinuxImageError`] with the defect of either.
pub fn packed_bzimage(plain: &[u8], packed: &[u8]) -> Result<Vec<u8>, LinuxImageError> {
    let setup = setup_of(plain)?;
    checked_setup(setup).ok_or(LinuxImageError::BadElf("its setup is damaged"))?;
    let mut memory = loaded(packed)?;
    memory.resize(memory.len().next_multiple_of(PARAGRAPH_BYTES), 0);
    let paragraphs = ((memory.len() / PARAGRAPH_BYTES) as u32).to_le_bytes();
    let mut file = [setup, &memory].concat();
    file[PARAGRAPHS_AT..][..paragraphs.len()].copy_from_slice(&paragraphs);
    Ok(file)
}

fn setup_of(elf: &[u8]) -> Result<&[u8], LinuxImageError> {
    let bad = LinuxImageError::BadElf;
    let header = FileHeader64::<Endianness>::parse(elf).map_err(|_| bad("no ELF header"))?;
    let endian = header.endian().map_err(|_| bad("unknown byte order"))?;
    let sections = header.sections(endian, elf).map_err(|_| bad("its sections are cut off"))?;
    let (_, setup) = sections.section_by_name(endian, SETUP_SECTION).ok_or(LinuxImageError::NoSetup)?;
    setup.data(endian, elf).map_err(|_| bad("its setup is cut off"))
}

/// The content of the segments as they lie in memory.
fn loaded(elf: &[u8]) -> Result<Vec<u8>, LinuxImageError> {
    let bad = LinuxImageError::BadElf;
    let header = FileHeader64::<Endianness>::parse(elf).map_err(|_| bad("no ELF header"))?;
    let endian = header.endian().map_err(|_| bad("unknown byte order"))?;
    let mut memory = Vec::new();
    for program in header.program_headers(endian, elf).map_err(|_| bad("its segments are cut off"))? {
        if program.p_type(endian) != PT_LOAD {
            continue;
        }
        let content = program.data(endian, elf).map_err(|()| bad("a segment is cut off"))?;
        let place = program.p_paddr(endian).checked_sub(LINKED_AT).filter(|place| *place < MAXIMUM_BYTES);
        let place = place.ok_or(bad("a segment lies elsewhere than images do"))? as usize;
        memory.resize(memory.len().max(place + content.len()), 0);
        memory[place..place + content.len()].copy_from_slice(content);
    }
    Ok(memory)
}

/// Returns how many bytes follow the setup, by its header; `None` if that makes no sense.
fn checked_setup(setup: &[u8]) -> Option<usize> {
    let sectors = 1 + usize::from(*setup.get(SECTORS_AT)?);
    let paragraphs = u32::from_le_bytes(*setup.get(PARAGRAPHS_AT..)?.first_chunk()?) as usize;
    let bytes = paragraphs * PARAGRAPH_BYTES;
    let is_whole = setup.len() == sectors * SECTOR_BYTES && setup.get(MAGIC_AT..MAGIC_AT + 4)? == b"HdrS";
    (is_whole && bytes as u64 <= MAXIMUM_BYTES).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ELF file with one segment of 48 bytes at 2 MiB, and a setup of two sectors behind it.
    fn image() -> Vec<u8> {
        const SEGMENT: usize = 120;
        const SETUP: usize = SEGMENT + 48;
        const NAMES: usize = SETUP + 2 * SECTOR_BYTES;
        const SECTIONS: usize = NAMES + 24;
        let mut elf = vec![0; SECTIONS + 3 * 64];
        let mut put = |at: usize, bytes: &[u8]| elf[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, b"\x7fELF\x02\x01\x01");
        put(16, &[2, 0, 62, 0, 1]);
        put(32, &64_u64.to_le_bytes());
        put(40, &(SECTIONS as u64).to_le_bytes());
        put(52, &[64, 0, 56, 0, 1, 0, 64, 0, 3, 0, 2]);
        put(64, &[1, 0, 0, 0, 5]);
        for (index, word) in [SEGMENT as u64, LINKED_AT, LINKED_AT, 48, 48, 16].iter().enumerate() {
            put(72 + 8 * index, &word.to_le_bytes());
        }
        put(SEGMENT, &[0x90; 48]);
        put(SETUP + SECTORS_AT, &[1]);
        put(SETUP + PARAGRAPHS_AT, &4_u32.to_le_bytes());
        put(SETUP + MAGIC_AT, b"HdrS");
        put(NAMES, b"\0.setup\0.shstrtab\0");
        for (index, (name, kind, offset, bytes)) in
            [(1_u32, 1_u32, SETUP, 2 * SECTOR_BYTES), (8, 3, NAMES, 18)].into_iter().enumerate()
        {
            let at = SECTIONS + 64 * (index + 1);
            put(at, &name.to_le_bytes());
            put(at + 4, &kind.to_le_bytes());
            put(at + 24, &(offset as u64).to_le_bytes());
            put(at + 32, &(bytes as u64).to_le_bytes());
        }
        elf
    }

    #[test]
    fn the_segments_follow_the_setup_as_they_lie_in_memory() {
        let file = bzimage(&image()).expect("good");
        assert_eq!(file.len(), 2 * SECTOR_BYTES + 64);
        assert_eq!(file[MAGIC_AT..][..4], *b"HdrS");
        assert_eq!(file[2 * SECTOR_BYTES..], [[0x90; 48].as_slice(), &[0; 16]].concat());
    }

    #[test]
    fn a_file_without_an_image_is_refused_by_name() {
        let refused = |change: fn(&mut Vec<u8>)| {
            let mut elf = image();
            change(&mut elf);
            bzimage(&elf).expect_err("bad")
        };
        let bad = LinuxImageError::BadElf;
        assert_eq!(refused(|elf| elf.truncate(0)), bad("no ELF header"));
        assert_eq!(refused(|elf| elf.truncate(1300)), bad("its sections are cut off"));
        assert_eq!(refused(|elf| elf[169 + SECTORS_AT - 1] = 2), bad("its setup is damaged"));
        assert_eq!(refused(|elf| elf[168 + PARAGRAPHS_AT] = 2), bad("its setup states another length"));
        assert_eq!(refused(|elf| elf[88 + 2] = 0x10), bad("a segment lies elsewhere than images do"));
        let at = image().windows(6).position(|window| window == b".setup").expect("its name");
        let mut elf = image();
        elf[at + 1] = b'x';
        let error = bzimage(&elf).expect_err("none");
        assert_eq!(error.to_string(), "this image has no Linux entry (section .setup); build it again with `make`");
    }
}
