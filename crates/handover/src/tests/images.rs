// SPDX-License-Identifier: MIT OR Apache-2.0
//! Images that can replace a running one, and those that cannot.

use std::vec;
use std::vec::Vec;

use zerocopy::IntoBytes as _;

use crate::image::{BUILD_TEXT_BYTES, IMAGE_BASE, Image, LINKED_AT, MAX_IMAGE_BYTES, NEWEST_SECTION, Note};
use crate::layout::{Kind, padded};
use crate::{ImageError, OLDEST_VERSION, VERSION};

const HEADER_BYTES: usize = 64;
const PROGRAM_BYTES: usize = 56;
const CODE_AT: usize = 0x1000;
const DATA_AT: usize = 0x2000;
const NOTE_AT: usize = 0x3000;
const ENTRY: u64 = IMAGE_BASE + LINKED_AT + 0x10;

/// A program header: type, flags, offset, virtual and physical address, bytes in file and memory.
#[derive(Clone, Copy)]
pub struct Program(u32, u32, u64, u64, u64, u64, u64);

const LOAD: u32 = 1;
const NOTE: u32 = 4;

/// A small image: a page of code, data with a zeroed part, the note.
pub struct Elf {
    pub machine: u16,
    pub class: u8,
    pub programs: Vec<Program>,
    pub owner: [u8; 8],
    pub note: Note,
    pub build: Option<[u8; BUILD_TEXT_BYTES]>,
    pub trial: Option<u32>,
    pub security: Option<u32>,
    pub iommu: Option<u32>,
    pub devices: Option<u32>,
    pub sections: Option<u32>,
}

impl Elf {
    pub fn new() -> Self {
        let (code, data) = (LINKED_AT, LINKED_AT + 0x1000);
        Self {
            machine: 62,
            class: 2,
            programs: vec![
                Program(LOAD, 5, CODE_AT as u64, IMAGE_BASE + code, code, 0x800, 0x800),
                Program(LOAD, 6, DATA_AT as u64, IMAGE_BASE + data, data, 0x100, 0x3000),
                Program(NOTE, 4, NOTE_AT as u64, code, code, 60, 60),
            ],
            owner: *b"Baton\0\0\0",
            note: Note { entry: ENTRY.into(), oldest: 1.into(), newest: VERSION.into(), version: padded("1.2.3") },
            build: None,
            trial: None,
            security: None,
            iommu: None,
            devices: None,
            sections: None,
        }
    }

    pub fn bytes(&self) -> Vec<u8> {
        let build = self.build.iter().flatten().copied();
        let numbers = [self.trial, self.security, self.iommu, self.devices, self.sections];
        let numbers = numbers.into_iter().flatten().flat_map(u32::to_le_bytes);
        let more: Vec<u8> = build.chain(numbers).collect();
        let note_bytes = 60 + more.len();
        let mut programs = self.programs.clone();
        for Program(kind, .., file, memory) in &mut programs {
            if *kind == NOTE {
                (*file, *memory) = (note_bytes as u64, note_bytes as u64);
            }
        }
        let mut bytes = vec![0; NOTE_AT + note_bytes];
        bytes[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', self.class, 1]);
        bytes[6] = 1;
        bytes[16..18].copy_from_slice(&2u16.to_le_bytes());
        bytes[18..20].copy_from_slice(&self.machine.to_le_bytes());
        bytes[20..24].copy_from_slice(&1u32.to_le_bytes());
        bytes[32..40].copy_from_slice(&(HEADER_BYTES as u64).to_le_bytes());
        for (at, value) in [(52, HEADER_BYTES), (54, PROGRAM_BYTES), (56, self.programs.len())] {
            bytes[at..at + 2].copy_from_slice(&(value as u16).to_le_bytes());
        }
        for (index, program) in programs.iter().enumerate() {
            let Program(kind, flags, offset, linear, physical, file, memory) = *program;
            let at = HEADER_BYTES + index * PROGRAM_BYTES;
            bytes[at..at + 4].copy_from_slice(&kind.to_le_bytes());
            bytes[at + 4..at + 8].copy_from_slice(&flags.to_le_bytes());
            for (place, value) in [offset, linear, physical, file, memory, 4].into_iter().enumerate() {
                bytes[at + 8 + place * 8..][..8].copy_from_slice(&value.to_le_bytes());
            }
        }
        bytes[CODE_AT..CODE_AT + 0x800].fill(0xc3);
        bytes[DATA_AT..DATA_AT + 0x100].fill(0xda);
        let head: Vec<u8> =
            [6u32, note_bytes as u32 - 20, 1].iter().flat_map(|word| word.to_le_bytes()).chain(self.owner).collect();
        bytes[NOTE_AT..NOTE_AT + 20].copy_from_slice(&head);
        bytes[NOTE_AT + 20..NOTE_AT + 60].copy_from_slice(self.note.as_bytes());
        bytes[NOTE_AT + 60..].copy_from_slice(&more);
        bytes
    }
}

/// Returns why the spoilt image is refused.
fn refused(spoil: impl FnOnce(&mut Elf)) -> ImageError {
    let mut elf = Elf::new();
    spoil(&mut elf);
    let error = Image::parse(&elf.bytes()).map(drop).expect_err("refused");
    assert!(!std::format!("{error}").is_empty());
    error
}

#[test]
fn an_image_is_placed_with_zeroes_around_it() {
    let bytes = Elf::new().bytes();
    let image = Image::parse(&bytes).expect("good");
    assert_eq!((image.memory_bytes(), image.note().version(), image.note().entry.get()), (0x4000, "1.2.3", ENTRY));
    let mut slot = vec![0xff; 0x5000];
    assert_eq!(image.place(&bytes, &mut slot, 0, usize::MAX), None);
    assert!(slot[..0x800].iter().all(|byte| *byte == 0xc3) && slot[0x800..0x1000].iter().all(|byte| *byte == 0));
    assert!(slot[0x1000..0x1100].iter().all(|byte| *byte == 0xda) && slot[0x1100..].iter().all(|byte| *byte == 0));
    let mut small = vec![0xff; 0x3fff];
    assert_eq!(image.place(&bytes, &mut small, 0, 0x1000), None);
    assert!(small.iter().all(|byte| *byte == 0xff), "nothing is written to too small a slot");
}

#[test]
fn an_image_is_placed_over_one_that_has_run() {
    let bytes = Elf::new().bytes();
    let image = Image::parse(&bytes).expect("good");
    let mut fresh = vec![0; 0x5000];
    image.place(&bytes, &mut fresh, 0, usize::MAX);
    let mut used = fresh.clone();
    for written in [0, 0x2ff, 0x800, 0x1010, 0x3fff, 0x4fff] {
        used[written] ^= 0x55;
    }
    let mut from = Some(0);
    while let Some(at) = from {
        from = image.place(&bytes, &mut used, at, 0x333);
    }
    assert!(used == fresh);
}

#[test]
fn what_is_read_of_a_file_is_what_was_placed() {
    let bytes = Elf::new().bytes();
    let image = Image::parse(&bytes).expect("good");
    let mut slot = vec![0; 0x5000];
    assert_eq!(image.place(&bytes, &mut slot, 0, usize::MAX), None);
    assert_eq!(image.placed(&bytes, &slot, 0), &bytes[..CODE_AT]);
    slot[0x10] = 1;
    slot[0x1050] = 2;
    assert_eq!(image.placed(&bytes, &slot, CODE_AT as u64).len(), 0x800);
    assert_eq!(image.placed(&bytes, &slot, CODE_AT as u64 + 0x10)[0], 1);
    assert_eq!(image.placed(&bytes, &slot, DATA_AT as u64 + 0x50)[0], 2);
    assert!(image.placed(&bytes, &slot, bytes.len() as u64).is_empty());
}

#[test]
fn segments_that_share_bytes_of_the_file_are_refused() {
    let error = refused(|elf| elf.programs[1].2 = CODE_AT as u64 + 0x7ff);
    assert_eq!(
        error,
        ImageError::BadSegment { address: LINKED_AT + 0x1000, reason: "shares bytes of the file with another" }
    );
}

#[test]
fn an_image_states_its_build_if_it_knows_it() {
    let mut elf = Elf::new();
    assert_eq!(Image::parse(&elf.bytes()).expect("good").build(), "");
    elf.build = Some(padded("a1b2c3"));
    assert_eq!(Image::parse(&elf.bytes()).expect("good").build(), "a1b2c3");
}

#[test]
fn an_image_that_reads_other_versions_can_still_be_described() {
    let mut elf = Elf::new();
    (elf.note.oldest, elf.note.newest) = (200.into(), 201.into());
    assert_eq!(Image::describe(&elf.bytes()).expect("good").note().newest.get(), 201);
}

#[test]
fn what_is_no_image_of_baton_is_refused() {
    assert!(matches!(Image::parse(b"#!/bin/sh\n"), Err(ImageError::BadElf(_))));
    assert!(matches!(Image::parse(&[]), Err(ImageError::BadElf(_))));
    assert_eq!(refused(|elf| elf.machine = 183), ImageError::WrongMachine(183));
    assert!(matches!(refused(|elf| elf.class = 1), ImageError::BadElf(_)));
    assert_eq!(refused(|elf| elf.owner = *b"baton\0\0\0"), ImageError::NoNote);
    assert_eq!(refused(|elf| elf.programs.truncate(2)), ImageError::NoNote);
}

#[test]
fn a_truncated_image_is_refused_wherever_it_ends() {
    let bytes = Elf::new().bytes();
    for end in 0..bytes.len() {
        assert!(Image::parse(&bytes[..end]).is_err(), "{end} of {} bytes", bytes.len());
    }
    let cut = Image::parse(&bytes[..DATA_AT]).map(drop);
    assert_eq!(cut, Err(ImageError::Truncated { needed_bytes: 0x2100, present_bytes: DATA_AT as u64 }));
}

#[test]
fn segments_where_they_cannot_be_are_refused() {
    let bad = |address, reason| ImageError::BadSegment { address, reason };
    assert_eq!(refused(|elf| elf.programs[0].1 = 7), bad(LINKED_AT, "can be written and executed"));
    assert_eq!(refused(|elf| elf.programs[0].4 = 0x1000), bad(0x1000, "lies below the link address of images"));
    let unaligned = LINKED_AT + 0x1800;
    assert_eq!(refused(|elf| elf.programs[1].4 = unaligned), bad(unaligned, "does not begin at a page"));
    assert_eq!(
        refused(|elf| elf.programs[1].3 += 0x1000),
        bad(LINKED_AT + 0x1000, "is linked at another address than images are")
    );
    assert_eq!(
        refused(|elf| elf.programs[1].6 = 0x80),
        bad(LINKED_AT + 0x1000, "has more bytes in the file than in memory")
    );
    assert_eq!(refused(|elf| elf.programs[0].6 = 0x1001), bad(LINKED_AT + 0x1000, "overlaps another"));
    let bytes = MAX_IMAGE_BYTES + 0x1001;
    assert_eq!(refused(|elf| elf.programs[1].6 = MAX_IMAGE_BYTES + 1), ImageError::TooLarge { bytes });
    assert_eq!(refused(|elf| elf.programs[1].6 = u64::MAX), ImageError::TooLarge { bytes: u64::MAX });
}

#[test]
fn an_entry_outside_the_code_is_refused() {
    for entry in [0, LINKED_AT, ENTRY + 0x800, ENTRY + 0x1000, u64::MAX] {
        assert_eq!(refused(|elf| elf.note.entry = entry.into()), ImageError::EntryOutside { address: entry });
    }
}

#[test]
fn an_image_that_does_not_read_our_version_is_refused() {
    for (oldest, newest) in [(0, OLDEST_VERSION - 1), (VERSION + 1, VERSION + 1), (VERSION + 1, VERSION)] {
        let error = refused(|elf| (elf.note.oldest, elf.note.newest) = (oldest.into(), newest.into()));
        assert_eq!(error, ImageError::OtherVersions { oldest, newest });
    }
}

#[test]
fn the_newest_version_that_both_know_is_written() {
    for (oldest, newest, common) in
        [(0, OLDEST_VERSION, OLDEST_VERSION), (VERSION, VERSION + 7, VERSION), (0, 99, VERSION)]
    {
        let mut elf = Elf::new();
        (elf.note.oldest, elf.note.newest) = (oldest.into(), newest.into());
        assert_eq!(Image::parse(&elf.bytes()).expect("good").version_to_write(VERSION), Some(common));
    }
}

#[test]
fn a_writer_that_speaks_less_writes_what_it_speaks_or_nothing() {
    let mut elf = Elf::new();
    let version = |elf: &Elf| Image::parse(&elf.bytes()).expect("good").version_to_write(OLDEST_VERSION);
    assert_eq!(version(&elf), Some(OLDEST_VERSION));
    elf.note.oldest = VERSION.into();
    assert_eq!(version(&elf), None);
}

#[test]
fn an_image_of_old_knows_the_first_pages_between_images() {
    let mut elf = Elf::new();
    let version = |elf: &Elf| Image::parse(&elf.bytes()).expect("good").trial_version();
    assert_eq!(version(&elf), 1);
    elf.build = Some(padded("abc"));
    assert_eq!(version(&elf), 1);
    elf.trial = Some(7);
    assert_eq!((version(&elf), Image::parse(&elf.bytes()).expect("good").build()), (7, "abc"));
}

#[test]
fn an_image_without_a_security_version_counts_as_0() {
    let version = |elf: Elf| Image::parse(&elf.bytes()).expect("good").security_version();
    assert_eq!(version(Elf::new()), 0);
    let old = Elf { build: Some(padded("a1b2c3")), trial: Some(2), ..Elf::new() };
    assert_eq!(version(old), 0);
    let new = Elf { build: Some(padded("a1b2c3")), trial: Some(2), security: Some(7), ..Elf::new() };
    assert_eq!(version(new), 7);
}

#[test]
fn an_image_without_a_version_of_iommus_knows_of_no_remapped_interrupts() {
    let version = |elf: Elf| Image::parse(&elf.bytes()).expect("good").iommu_version();
    let old = Elf { build: Some(padded("a1b2c3")), trial: Some(2), security: Some(7), ..Elf::new() };
    assert_eq!(version(Elf { iommu: Some(1), ..old }), 1);
    assert_eq!(version(Elf { build: Some(padded("a1b2c3")), trial: Some(2), security: Some(7), ..Elf::new() }), 0);
}

#[test]
fn an_image_that_states_no_newest_section_does_not_return_by_itself() {
    let knows = |sections| {
        let known = Elf { trial: Some(2), security: Some(7), iommu: Some(1), devices: Some(3), ..Elf::new() };
        let elf = Elf { build: Some(padded("a1b2c3")), sections, ..known };
        Image::parse(&elf.bytes()).expect("good").knows_deadlines()
    };
    let section = Kind::Deadline as u32;
    assert_eq!([None, Some(section - 1), Some(section), Some(section + 1)].map(knows), [false, false, true, true]);
    assert!(NEWEST_SECTION >= section);
}

#[test]
fn an_image_is_known_as_soon_as_its_note_has_arrived() {
    let elf = Elf { build: Some(padded("a1b2c3")), trial: Some(2), security: Some(7), ..Elf::new() };
    let mut bytes = elf.bytes();
    let known = bytes.len();
    bytes.resize(known + 0x1000, 0);
    for arrived in 0..bytes.len() {
        let found = Image::describe_head(&bytes[..arrived], bytes.len() as u64).expect("nothing is wrong with it");
        assert_eq!(found.map(|image| image.security_version()), (arrived >= known).then_some(7), "{arrived} bytes");
    }
}

#[test]
fn a_file_that_is_no_image_is_refused_by_its_first_bytes() {
    const FILE_BYTES: u64 = 13 << 20;
    let head = |bytes: &[u8]| Image::describe_head(bytes, FILE_BYTES).map(drop);
    let mut kernel = vec![0; 4032];
    kernel[..2].copy_from_slice(b"MZ");
    assert!(matches!(head(&kernel), Err(ImageError::BadElf(_))));
    let good = Elf::new().bytes();
    assert_eq!(head(&good[..4032]), Ok(()));
    let other = Elf { machine: 183, ..Elf::new() }.bytes();
    assert_eq!(head(&other[..4032]), Err(ImageError::WrongMachine(183)));
    let cut = Image::describe_head(&good[..4032], 0x2000).map(drop);
    assert_eq!(cut, Err(ImageError::Truncated { needed_bytes: DATA_AT as u64 + 0x100, present_bytes: 0x2000 }));
    let mut note_missing = Elf::new();
    note_missing.programs.pop();
    assert_eq!(head(&note_missing.bytes()[..4032]), Err(ImageError::NoNote));
}
