// SPDX-License-Identifier: MIT OR Apache-2.0
use proptest::prelude::*;
use std::string::ToString;

use super::*;
use crate::multiboot2::{MAGIC, Multiboot2Error, parse};

/// Information with these tags, as a loader writes it: each at a multiple of eight, the end behind the last one.
fn information(tags: &[(u32, Vec<u8>)]) -> TestMemory {
    let mut bytes = std::vec![0; 8];
    for (kind, content) in tags.iter().chain([&(0, Vec::new())]) {
        bytes.extend_from_slice(&kind.to_le_bytes());
        bytes.extend_from_slice(&(8 + content.len() as u32).to_le_bytes());
        bytes.extend_from_slice(content);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
    }
    let total = bytes.len() as u32;
    bytes[..4].copy_from_slice(&total.to_le_bytes());
    TestMemory(bytes)
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn map(entries: &[u64]) -> (u32, Vec<u8>) {
    (6, words(&[24]).into_iter().chain(words(entries)).collect())
}

fn efi_map(entries: &[[u64; 6]]) -> (u32, Vec<u8>) {
    (17, words(&[48 | 1 << 32]).into_iter().chain(entries.iter().flat_map(|entry| words(entry))).collect())
}

fn module(start: u32, end: u32, line: &str) -> (u32, Vec<u8>) {
    (3, words(&[u64::from(start) | u64::from(end) << 32]).into_iter().chain(line.bytes()).chain([0]).collect())
}

fn pc() -> (u32, Vec<u8>) {
    map(&[0, 0x9_fc00, 1, 0x9_fc00, 0x400, 2, 0x10_0000, 0x7ff0_0000, 1])
}

fn parsed(tags: &[(u32, Vec<u8>)]) -> Result<BootInfo, Multiboot2Error> {
    parse(&information(tags), PhysAddr(BASE))
}

#[test]
fn information_is_read_with_all_its_tags() {
    let line = (1, b"log=debug console=ttyS0\0".to_vec());
    let info = parsed(&[(21, words(&[0])), line, module(0x40_0000, 0x40_1234, "bundle"), pc()]).unwrap();
    assert_eq!(info.protocol, Protocol::Multiboot2);
    assert_eq!(&info.command_line[..], "log=debug console=ttyS0");
    assert_eq!(info.modules[0].range, range(0x40_0000, 0x40_1234));
    assert_eq!(&info.modules[0].command_line[..], "bundle");
    assert_eq!(info.memory_map.usable().collect::<Vec<_>>(), [range(0, 0x9_f000), range(0x10_0000, 0x8000_0000)]);
    assert_eq!((info.rsdp, info.notes()), (None, &[][..]));
    assert_eq!(
        crate::loader::parse(&information(&[pc()]), MAGIC, PhysAddr(BASE)).map(|info| info.protocol).ok(),
        Some(Protocol::Multiboot2)
    );
}

#[test]
fn the_root_pointer_is_the_newest_copy_in_the_information() {
    let old = (14, b"RSD PTR old".to_vec());
    let new = (15, b"RSD PTR new".to_vec());
    let tags = [old.clone(), new, pc()];
    let at = parsed(&tags).unwrap().rsdp.unwrap();
    assert_eq!(information(&tags).bytes(at, 11), Some(&b"RSD PTR new"[..]));
    let tags = [pc(), old];
    let at = parsed(&tags).unwrap().rsdp.unwrap();
    assert_eq!(information(&tags).bytes(at, 11), Some(&b"RSD PTR old"[..]));
}

#[test]
fn efis_map_serves_where_there_is_no_other() {
    // Conventional memory, boot services' data, runtime data, tables.
    let efi = efi_map(&[
        [7, 0x10_0000, 0, 0x100, 0, 0],
        [4, 0x20_0000, 0, 0x100, 0, 0],
        [6, 0x30_0000, 0, 1, 0, 0],
        [9, 0x40_0000, 0, 1, 0, 0],
    ]);
    let info = parsed(std::slice::from_ref(&efi)).unwrap();
    assert_eq!(info.memory_map.usable().collect::<Vec<_>>(), [range(0x10_0000, 0x30_0000)]);
    assert_eq!(info.memory_map.kind_at(PhysAddr(0x30_0000)), Some(RegionKind::Reserved));
    assert_eq!(info.memory_map.kind_at(PhysAddr(0x40_0000)), Some(RegionKind::AcpiReclaimable));
    let info = parsed(&[efi, pc()]).unwrap();
    assert_eq!(info.memory_map.kind_at(PhysAddr(0x30_0000)), Some(RegionKind::Usable), "the usual map comes first");
}

#[test]
fn efis_maps_of_hundreds_of_entries_fit() {
    let entries: Vec<_> = (0..600).map(|page| [1 + page % 4, 0x10_0000 + page * 0x1000, 0, 1, 0, 0]).collect();
    let info = parsed(&[efi_map(&entries)]).unwrap();
    assert_eq!(info.memory_map.usable().collect::<Vec<_>>(), [range(0x10_0000, 0x10_0000 + 600 * 0x1000)]);
}

#[test]
fn what_no_host_can_start_from_is_refused() {
    assert_eq!(parsed(&[]), Err(Multiboot2Error::NoMemoryMap));
    assert_eq!(parsed(&[map(&[])]), Err(Multiboot2Error::NoMemoryMap));
    assert_eq!(parsed(&[map(&[0, 0x1000, 2])]), Err(Multiboot2Error::NoUsableMemory));
    assert_eq!(parsed(&[pc(), (18, Vec::new())]), Err(Multiboot2Error::BootServices));
    assert_eq!(parsed(&[(6, words(&[0]))]), Err(Multiboot2Error::BadTag { kind: 6, offset: 8 }), "entries of no size");
    assert_eq!(
        parsed(&[(6, words(&[8, 1]))]),
        Err(Multiboot2Error::BadTag { kind: 6, offset: 8 }),
        "of too small a one"
    );
    let many: Vec<u64> = (0..129).flat_map(|page| [page * 0x2000, 0x1000, 1]).collect();
    assert_eq!(parsed(&[map(&many)]), Err(Multiboot2Error::TooManyRegions));
    let damaged = |offset: u64, value: u32| {
        let mut memory = information(&[pc()]);
        memory.put_u32(BASE + offset, value);
        parse(&memory, PhysAddr(BASE)).unwrap_err()
    };
    assert_eq!(damaged(0, 7), Multiboot2Error::BadSize { bytes: 7 });
    assert_eq!(damaged(0, u32::MAX), Multiboot2Error::BadSize { bytes: u32::MAX });
    assert_eq!(damaged(0, 0x10_0000), Multiboot2Error::Unreadable(PhysAddr(BASE)));
    assert_eq!(damaged(12, 7), Multiboot2Error::BadTag { kind: 6, offset: 8 });
    assert_eq!(damaged(12, 0x1000), Multiboot2Error::BadTag { kind: 6, offset: 8 });
    let text = damaged(0, 7).to_string();
    assert_eq!(text, "Multiboot2 information has 7 bytes: start Baton with GRUB's multiboot2");
}

#[test]
fn what_a_host_can_do_without_is_noted_and_left_out() {
    let long = std::string::String::from_utf8(std::vec![b'm'; 129]).unwrap();
    let tags = [
        (1, std::vec![b'a'; COMMAND_LINE_BYTES + 1]),
        module(0x5000, 0x5000, ""),
        module(0x6000, 0x5000, ""),
        module(0x7000, 0x8000, &long),
        map(&[0, 0, 1, 0x10_0000, 0x10_0000, 1]),
    ];
    let info = parsed(&tags).unwrap();
    let expected = [
        Note::AbsurdRegions(1),
        Note::CommandLineCut { module: None },
        Note::AbsurdModule { index: 0 },
        Note::AbsurdModule { index: 1 },
        Note::CommandLineCut { module: Some(2) },
    ];
    assert_eq!(info.notes(), expected);
    assert_eq!(info.modules.iter().map(|module| module.range.start().0).collect::<Vec<_>>(), [0x7000]);
}

#[test]
fn of_too_many_modules_the_first_are_taken() {
    let modules = (0..20).map(|index| module(0x1000 * (index + 1), 0x1000 * (index + 2), ""));
    let info = parsed(&modules.chain([pc()]).collect::<Vec<_>>()).unwrap();
    assert_eq!(info.modules.len(), MAXIMUM_MODULES);
    assert_eq!(info.notes(), [Note::TooManyModules { count: 20 }]);
}

#[test]
fn a_missing_end_is_the_informations_own() {
    let mut memory = information(&[pc()]);
    memory.0.truncate(memory.0.len() - 8);
    let bytes = memory.0.len() as u32;
    memory.put_u32(BASE, bytes);
    assert!(parse(&memory, PhysAddr(BASE)).is_ok());
}

proptest! {
    #[test]
    fn no_information_whatever_panics(changes in prop::collection::vec((8u64..0x90, any::<u32>(), 0u32..32), 0..8)) {
        let mut memory = information(&[(1, b"log=debug\0".to_vec()), module(0x40_0000, 0x40_1234, "bundle"), pc()]);
        for (offset, value, shift) in changes {
            memory.put_u32(BASE + offset, value >> shift);
        }
        if let Ok(info) = parse(&memory, PhysAddr(BASE)) {
            prop_assert!(info.memory_map.usable_bytes() > 0);
            prop_assert!(info.modules.iter().all(|module| !module.range.is_empty()));
        }
    }
}
