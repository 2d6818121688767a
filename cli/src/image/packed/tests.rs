// SPDX-License-Identifier: MIT OR Apache-2.0
//! Images that are packed and unpacked.

use object::elf::PT_NOTE;
use proptest::prelude::*;

use super::*;

const CONTENT_AT: usize = 2 * PAGE;
const TAIL: &[u8] = b"sections and a seal";

/// An ELF file with a first page, a note in it, and two segments behind it, the second with memory beyond its content.
fn image(content: &[u8], memory_bytes: u64) -> Vec<u8> {
    let half = content.len() / 2;
    let mut elf = vec![0; CONTENT_AT];
    let mut put = |at: usize, bytes: &[u8]| elf[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, b"\x7fELF\x02\x01\x01");
    put(16, &[2, 0, 62, 0, 1]);
    put(32, &64_u64.to_le_bytes());
    put(52, &[64, 0, 56, 0, 4, 0, 64, 0, 0, 0, 0]);
    let high = 0xffff_ffff_8020_1000;
    let place = LINKED_AT + PAGE as u64;
    let segment = |at: usize, kind: u32, words: [u64; 6]| (at, kind, words);
    for (at, kind, words) in [
        segment(64, 1, [PAGE as u64, LINKED_AT, LINKED_AT, 200, 200, 4096]),
        segment(120, 4, [PAGE as u64 + 100, LINKED_AT + 100, LINKED_AT + 100, 20, 20, 4]),
        segment(176, 1, [CONTENT_AT as u64, high, place, half as u64, half as u64, 4096]),
        segment(
            232,
            1,
            [
                (CONTENT_AT + half) as u64,
                high + half as u64,
                place + half as u64,
                (content.len() - half) as u64,
                memory_bytes - half as u64,
                4096,
            ],
        ),
    ] {
        put(at, &kind.to_le_bytes());
        words.iter().enumerate().for_each(|(index, word)| put(at + 8 + 8 * index, &word.to_le_bytes()));
    }
    put(PAGE + 48, MARK);
    elf.extend(content);
    elf.extend(TAIL);
    elf
}

/// With room to unpack itself.
fn usual(content: &[u8]) -> Vec<u8> {
    image(content, (content.len() + PACKED_MARGIN_BYTES) as u64)
}

fn code(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * at / 7 % 251) as u8 & 0xf0).collect()
}

#[test]
fn a_packed_image_is_smaller_and_unpacks_to_the_same_file() {
    let plain = usual(&code(100_000));
    let packed = packed(&plain).expect("good");
    assert!(packed.len() < plain.len(), "{} bytes", packed.len());
    assert_eq!(unpacked(&packed), Ok(Some(plain.clone())));
    assert_eq!(unpacked(&plain), Ok(None));
}

#[test]
fn its_segments_are_the_first_page_and_the_block_with_all_memory() {
    let plain = usual(&code(50_000));
    let packed = packed(&plain).expect("good");
    let (endian, programs) = elf::programs(&packed).expect("an ELF file");
    let [boot, note, block] = programs else { panic!("{} segments", programs.len()) };
    assert_eq!((boot.p_offset(endian), boot.p_paddr(endian), boot.p_filesz(endian)), (4096, LINKED_AT, 200));
    assert_eq!((note.p_type(endian), note.p_offset(endian), note.p_filesz(endian)), (PT_NOTE, 4096 + 100, 20));
    assert_eq!((block.p_offset(endian), block.p_paddr(endian)), (8192, LINKED_AT + 4096));
    assert_eq!(block.p_memsz(endian), 50_000 + PACKED_MARGIN_BYTES as u64);
    let stated = &packed[PAGE + 48 + MARK.len()..][..4];
    assert_eq!(stated, (block.p_filesz(endian) as u32).to_le_bytes());
}

#[test]
fn an_image_that_cannot_unpack_itself_is_refused_by_what_it_lacks() {
    let content = code(10_000);
    let refused = |plain: &[u8]| packed(plain).expect_err("refused");
    let bad = PackedError::BadImage;
    assert_eq!(refused(&[]), bad("no ELF file"));
    assert_eq!(refused(&image(&content, 10_000)), bad("it has too little memory to unpack itself"));
    let with = |change: fn(&mut Vec<u8>)| {
        let mut plain = usual(&code(10_000));
        change(&mut plain);
        refused(&plain)
    };
    assert_eq!(with(|plain| plain[PAGE + 48] = 0), bad("it does not unpack itself"));
    assert_eq!(with(|plain| plain[64 + 26] = 1), bad("no first page"));
    assert_eq!(with(|plain| plain[232 + 24] ^= 1), bad("its segments are not in a row"));
    assert_eq!(with(|plain| plain.truncate(CONTENT_AT + 100)), bad("a segment is cut off"));
}

#[test]
fn a_damaged_file_is_refused_by_its_part() {
    let plain = usual(&code(20_000));
    let packed = packed(&plain).expect("good");
    let refused = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut file = packed.clone();
        change(&mut file);
        unpacked(&file)
    };
    let end = packed.len() - size_of::<Trailer>();
    assert_eq!(refused(&|file| _ = file.drain(..end - 10)), Err(PackedError::Damaged("its lengths")));
    assert_eq!(refused(&|file| file[end + 20] ^= 1), Err(PackedError::Damaged("its checksum")));
    assert_eq!(refused(&|file| file[end + 7] = 0xff), Err(PackedError::Damaged("its lengths")));
    assert_eq!(refused(&|file| file.truncate(end + 30)), Ok(None), "its end is cut off: it is no packed one");
    for at in (2 * PAGE..end).step_by(7) {
        let found = refused(&|file| file[at] ^= 0x55);
        // Two blocks may unpack to the same.
        assert!(found.is_err() || found == Ok(Some(plain.clone())), "byte {at}");
    }
}

proptest! {
    /// Any content comes back, and unpacks where it lies.
    #[test]
    fn any_content_comes_back(content in prop::collection::vec(prop_oneof![Just(0u8), any::<u8>()], 2..40_000)) {
        let plain = usual(&content);
        prop_assert_eq!(unpacked(&packed(&plain).expect("good")), Ok(Some(plain)));
    }

    /// Any bytes at the end of any file are refused or unpacked.
    #[test]
    fn any_trailer_is_answered(file in prop::collection::vec(any::<u8>(), 0..200), numbers: [u32; 6]) {
        let mut file = file;
        numbers.iter().for_each(|number| file.extend((number & 0xff).to_le_bytes()));
        file.extend(TRAILER_MARK);
        let _ = unpacked(&file);
    }
}
