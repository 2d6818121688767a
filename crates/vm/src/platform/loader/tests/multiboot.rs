// SPDX-License-Identifier: MIT OR Apache-2.0
use super::images::{CODE, elf32, elf64, multiboot_elf, multiboot_header, put};
use super::*;
use crate::vcpu::{Gpr, cr0};

const INFO: u64 = layout::boot::INFO.0;
const ADDRESSES: u32 = 1 << 16;

/// No ELF: header at 0x10 in the file, whose first byte belongs at 1 MiB.
fn flat(load_end: u32, bss_end: u32, entry: u32) -> Vec<u8> {
    let mut image = std::vec![0x90; 0x200];
    put(&mut image, 0x10, &multiboot_header(ADDRESSES));
    for (index, address) in [0x10_0010, 0x10_0000, load_end, bss_end, entry].into_iter().enumerate() {
        put(&mut image, 0x1c + index * 4, &address.to_le_bytes());
    }
    image
}

#[test]
fn the_kernel_starts_in_protected_mode_with_magic_and_information() {
    let state = load(&memory(8), &multiboot_elf(), b"", &[]).unwrap();
    assert_eq!(state.rip, 0x20_0004);
    assert_eq!((state.gprs[Gpr::Rax as usize], state.gprs[Gpr::Rbx as usize]), (0x2bad_b002, INFO));
    assert_eq!((state.cr0, state.cs.rights.packed(), state.data.rights.packed()), (cr0::PE | cr0::ET, 0xc9b, 0xc93));
}

#[test]
fn a_64_bit_elf_linked_high_starts_at_its_physical_entry() {
    let mut image = elf64(0xffff_ffff_8020_0020, &[CODE]);
    put(&mut image, 0x400, &multiboot_header(0));
    assert_eq!(load(&memory(8), &image, b"", &[]).unwrap().rip, 0x20_0020);
}

#[test]
fn the_information_names_memory_command_line_map_and_modules() {
    let memory = memory(8);
    load(&memory, &multiboot_elf(), b"-x", &[Module { bytes: &[9; 100], command_line: b"m" }]).unwrap();
    let word = |at| u32_at(&memory, INFO + at);
    assert_eq!((word(0), word(4), word(8)), (0x24d, 640, 7 * 1024));
    assert_eq!(memory.bytes(Gpa(word(16).into()), 3), b"-x\0");
    let [start, end, line] = [0, 4, 8].map(|at| u32_at(&memory, u64::from(word(24)) + at));
    assert_eq!((word(20), start % 4096, end - start), (1, 0, 100));
    assert_eq!(memory.bytes(Gpa(start.into()), 100), [9; 100]);
    assert_eq!(memory.bytes(Gpa(line.into()), 2), b"m\0");
    assert_eq!(memory.bytes(Gpa(word(64).into()), 6), b"Baton\0");
}

#[test]
fn the_map_is_a_list_of_sized_entries() {
    let memory = memory(8);
    load(&memory, &multiboot_elf(), b"", &[]).unwrap();
    let (bytes, start) = (u32_at(&memory, INFO + 44), u64::from(u32_at(&memory, INFO + 48)));
    let map = memory_map(8 * MIB);
    assert_eq!(bytes as usize, map.len() * 24);
    for (index, entry) in map.iter().enumerate() {
        let at = start + index as u64 * 24;
        assert_eq!((u32_at(&memory, at), u32_at(&memory, at + 20)), (20, entry.kind as u32));
        assert_eq!((u64_at(&memory, at + 4), u64_at(&memory, at + 12)), (entry.start.0, entry.bytes));
    }
}

#[test]
fn a_file_that_is_no_elf_loads_by_the_headers_addresses() {
    let memory = memory(8);
    memory.write(Gpa(0x10_0180), &[0xee; 0x200]).unwrap();
    let state = load(&memory, &flat(0x10_0180, 0x10_0300, 0x10_0040), b"", &[]).unwrap();
    assert_eq!(state.rip, 0x10_0040);
    assert_eq!(memory.bytes(Gpa(0x10_017f), 2), [0x90, 0]);
    assert_eq!(memory.bytes(Gpa(0x10_02ff), 2), [0, 0xee]);
}

#[test]
fn without_an_end_the_whole_file_is_loaded() {
    let memory = memory(8);
    load(&memory, &flat(0, 0, 0x10_0040), b"", &[]).unwrap();
    assert_eq!(memory.bytes(Gpa(0x10_01ff), 2), [0x90, 0]);
}

#[test]
fn addresses_that_contradict_each_other_are_refused() {
    let refusal = |image: &[u8]| load(&memory(8), image, b"", &[]).unwrap_err();
    assert!(matches!(refusal(&flat(0x10_0201, 0, 0x10_0040)), LoadError::Truncated { .. }));
    assert!(matches!(refusal(&flat(0xf_0000, 0, 0x10_0040)), LoadError::BadMultiboot { .. }));
    assert_eq!(refusal(&flat(0, 0, 0x40)), LoadError::EntryOutside { address: 0x40 });
    let mut image = flat(0, 0, 0x10_0040);
    put(&mut image, 0x20, &0x10_0020_u32.to_le_bytes());
    assert!(matches!(refusal(&image), LoadError::BadMultiboot { .. }));
    put(&mut image, 0x20, &0xf_0000_u32.to_le_bytes());
    assert!(matches!(refusal(&image), LoadError::BadMultiboot { .. }));
}

#[test]
fn a_header_with_a_wrong_checksum_is_none() {
    let mut image = multiboot_elf();
    image[0x408] ^= 1;
    assert_eq!(recognise(&image), Err(LoadError::NotAKernel));
}

#[test]
fn a_header_beyond_8_kib_is_none() {
    let mut image = std::vec![0; 0x4000];
    put(&mut image, 8192, &multiboot_header(0));
    assert_eq!(recognise(&image), Err(LoadError::NotAKernel));
    put(&mut image, 8192 - 12, &multiboot_header(0));
    assert_eq!(recognise(&image), Ok(KernelKind::Multiboot));
}

#[test]
fn a_demand_for_a_video_mode_is_refused() {
    let mut image = elf32(0x20_0000, &[super::images::CODE_32]);
    put(&mut image, 0x400, &multiboot_header(0b111));
    assert_eq!(load(&memory(8), &image, b"", &[]), Err(LoadError::MultibootFeatures { flags: 0b100 }));
}
