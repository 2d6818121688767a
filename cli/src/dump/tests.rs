// SPDX-License-Identifier: MIT OR Apache-2.0
//! Core files read back by an independent reader: the `object` crate.

use object::Endianness;
use object::elf::{ET_CORE, FileHeader64, PT_LOAD, PT_NOTE};
use object::read::elf::{FileHeader as _, ProgramHeader as _};
use proptest::prelude::*;

use super::*;
use crate::dump::mappings::Run;

const RANGES: [MemoryRange; 2] = [MemoryRange { gpa: 0, bytes: 1 << 20 }, MemoryRange { gpa: 1 << 32, bytes: 1 << 20 }];

fn image() -> Image {
    Image::new(tempfile::tempfile().expect("a file"), elf::data_offset(2), &RANGES).expect("an image")
}

/// Registers in which each word names its place, paging in 64-bit mode at 0x1000.
fn registers() -> VcpuRegisters {
    let mut registers = VcpuRegisters {
        rip: 0xffff_ffff_8100_1234,
        rflags: 0x246,
        cr0: 0x8000_0011,
        cr3: 0x1000,
        efer: 0x500,
        ..VcpuRegisters::default()
    };
    registers.gprs = std::array::from_fn(|number| 0x1111 * number as u64);
    registers
}

fn written(image: &Image, registers: &[VcpuRegisters], runs: &[Run]) -> Vec<u8> {
    use std::os::unix::fs::FileExt as _;
    elf::write(image, registers, runs).expect("written");
    let mut bytes = vec![0; image.file.metadata().expect("known").len() as usize];
    image.file.read_exact_at(&mut bytes, 0).expect("read");
    bytes
}

fn put_entry(image: &Image, table: u64, index: u64, entry: u64) {
    image.write(table + index * 8, &entry.to_le_bytes()).expect("in memory");
}

#[test]
fn a_core_has_registers_and_the_place_of_memory() {
    let image = image();
    image.write(0x2345, b"here").expect("in memory");
    image.write((1 << 32) + 7, b"there").expect("in memory");
    let run = Run { linear: 0xffff_ffff_8100_0000, gpa: 0x2000, bytes: 0x1000 };
    let bytes = written(&image, &[registers(), registers()], &[run]);
    let header = FileHeader64::<Endianness>::parse(&*bytes).expect("ELF");
    let endian = header.endian().expect("known");
    assert_eq!((header.e_type(endian), header.e_machine(endian)), (ET_CORE, object::elf::EM_X86_64));
    let segments = header.program_headers(endian, &*bytes).expect("program headers");
    let loads: Vec<_> = segments.iter().filter(|segment| segment.p_type(endian) == PT_LOAD).collect();
    let places: Vec<_> =
        loads.iter().map(|load| (load.p_vaddr(endian), load.p_paddr(endian), load.p_filesz(endian))).collect();
    assert_eq!(
        places,
        [(run.linear, run.gpa, run.bytes), (0, 0, 1 << 20), (1 << 32, 1 << 32, 1 << 20)],
        "mapped pages come first"
    );
    assert_eq!(&loads[0].data(endian, &*bytes).expect("in the file")[0x345..][..4], b"here");
    assert_eq!(&loads[2].data(endian, &*bytes).expect("in the file")[7..][..5], b"there");
    let note = segments.iter().find(|segment| segment.p_type(endian) == PT_NOTE).expect("notes");
    let mut notes = note.notes(endian, &*bytes).expect("readable").expect("notes");
    let mut names = Vec::new();
    while let Some(note) = notes.next().expect("whole") {
        names.push((String::from_utf8_lossy(note.name()).into_owned(), note.desc().len()));
        if note.name() == b"CORE" {
            let word =
                |index: usize| u64::from_le_bytes(note.desc()[112 + index * 8..][..8].try_into().expect("eight"));
            assert_eq!((word(16), word(18), word(19)), (0xffff_ffff_8100_1234, 0x246, 0x4444), "rip, flags, rsp");
            assert_eq!((word(0), word(10), word(11), word(5)), (0xffff, 0, 0x1111, 0x3333), "r15, rax, rcx, rbx");
        }
    }
    assert_eq!(
        names,
        [("CORE", 336), ("QEMU", 440), ("CORE", 336), ("QEMU", 440)].map(|(name, it)| (name.to_owned(), it))
    );
}

#[test]
fn page_tables_are_followed_and_neighbours_joined() {
    let image = image();
    // Root → 0x2000 → 0x3000 → a table of small pages at 0x4000, and a large page.
    put_entry(&image, 0x1000, 511, 0x2003);
    put_entry(&image, 0x2000, 510, 0x3003);
    put_entry(&image, 0x3000, 8, 0x4003);
    put_entry(&image, 0x3000, 9, 0x83);
    put_entry(&image, 0x4000, 0, 0x8000_0000_0001_0003);
    put_entry(&image, 0x4000, 1, 0x1_1003);
    put_entry(&image, 0x4000, 3, 0x1_3003);
    put_entry(&image, 0x4000, 4, 0x7fff_f003);
    let runs = mappings::of(&image, &registers());
    assert_eq!(
        runs,
        [
            Run { linear: 0xffff_ffff_8100_0000, gpa: 0x1_0000, bytes: 0x2000 },
            Run { linear: 0xffff_ffff_8100_3000, gpa: 0x1_3000, bytes: 0x1000 },
            Run { linear: 0xffff_ffff_8120_0000, gpa: 0, bytes: 1 << 20 },
        ],
        "pages outside memory are left out, a large page is cut where memory ends"
    );
    assert!(mappings::of(&image, &VcpuRegisters { cr0: 0x11, ..registers() }).is_empty());
    assert!(mappings::of(&image, &VcpuRegisters { efer: 0, ..registers() }).is_empty());
}

#[test]
fn tables_that_lead_round_in_circles_come_to_an_end() {
    let image = image();
    (0..512).for_each(|index| put_entry(&image, 0x1000, index, 0x1003));
    assert!(mappings::of(&image, &registers()).len() <= mappings::MOST_RUNS);
}

proptest! {
    #[test]
    fn any_tables_are_borne(words in proptest::collection::vec((0_u64..4096, any::<u64>()), 0..600), cr3: u64, la57: bool) {
        let image = image();
        for (index, word) in words {
            put_entry(&image, 0x1000, index % 2048, word & 0x80ff_ffff_ffff_7fff);
        }
        let registers = VcpuRegisters { cr3: cr3 & 0x3fff, cr4: u64::from(la57) << 12, ..registers() };
        for run in mappings::of(&image, &registers) {
            prop_assert!(image.offset_of(run.gpa, run.bytes).is_some());
        }
    }
}
