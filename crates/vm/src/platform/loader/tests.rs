// SPDX-License-Identifier: MIT OR Apache-2.0
mod images;
mod linux;
mod low;
mod multiboot;
mod properties;
mod pvh;

use std::string::ToString;
use std::vec::Vec;

use super::*;
use crate::addr::Gpa;
use crate::platform::layout;
use crate::testing::FakeMemory;

const MIB: u64 = 1 << 20;

fn memory(mib: u64) -> FakeMemory {
    FakeMemory::new((mib * MIB) as usize)
}

fn module(bytes: &[u8]) -> Module<'_> {
    Module { bytes, command_line: b"" }
}

fn u32_at(memory: &FakeMemory, gpa: u64) -> u32 {
    u32::from_le_bytes(memory.bytes(Gpa(gpa), 4).try_into().unwrap())
}

fn u64_at(memory: &FakeMemory, gpa: u64) -> u64 {
    memory.read_u64(Gpa(gpa)).unwrap()
}

#[test]
fn a_file_without_magic_is_no_kernel() {
    for image in [&b""[..], b"\x7fEL", b"MZ", &[0; 4096]] {
        assert_eq!(recognise(image), Err(LoadError::NotAKernel));
    }
    assert!(LoadError::NotAKernel.to_string().starts_with("not a kernel: neither bzImage, PVH nor Multiboot ELF"));
}

#[test]
fn the_first_kind_whose_magic_fits_is_chosen() {
    let mut image = images::pvh_elf();
    assert_eq!(recognise(&image), Ok(KernelKind::Pvh));
    images::put(&mut image, 0x100, &images::multiboot_header(0));
    assert_eq!(recognise(&image), Ok(KernelKind::Pvh));
    images::put(&mut image, 0x1fe, &[0x55, 0xaa]);
    images::put(&mut image, 0x202, b"HdrS");
    assert_eq!(recognise(&image), Ok(KernelKind::Linux));
}

#[test]
fn a_guest_with_hardly_any_memory_is_refused() {
    let refused = load(&FakeMemory::new(64 * 1024), &images::bzimage(), b"", &[]).unwrap_err();
    assert_eq!(refused.to_string(), "guest memory of 64 KiB is too little: give the guest memory >= 2 MiB");
}

#[test]
fn a_command_line_with_a_zero_byte_is_refused() {
    let refused = load(&memory(4), &images::bzimage(), b"quiet\0", &[]);
    assert_eq!(refused, Err(LoadError::CommandLineHasZero { offset: 5 }));
}

#[test]
fn the_memory_map_is_ascending_and_names_every_usable_byte_once() {
    for bytes in [2 * MIB, 64 * MIB, 3072 * MIB, 3073 * MIB, 1 << 40] {
        let map = memory_map(bytes);
        assert!(map.windows(2).all(|pair| pair[0].start.0 + pair[0].bytes <= pair[1].start.0));
        let usable: u64 = map.iter().filter(|entry| entry.kind == MemoryKind::Usable).map(|entry| entry.bytes).sum();
        assert_eq!(usable, bytes - 0x6_0000);
    }
}

#[test]
fn memory_beyond_3_gib_continues_at_4_gib() {
    let last = *memory_map(5 << 30).last().unwrap();
    assert_eq!(last, MapEntry { start: layout::HIGH_MEMORY, bytes: 2 << 30, kind: MemoryKind::Usable });
    assert_eq!(memory_map(3 << 30).len(), MAX_MAP_ENTRIES - 1);
}

#[test]
fn the_tables_of_acpi_are_in_the_map_as_such() {
    let kinds: Vec<_> = memory_map(64 * MIB).iter().map(|entry| (entry.start.0, entry.kind)).collect();
    let expected = [
        (0, MemoryKind::Usable),
        (0xa_0000, MemoryKind::Reserved),
        (0xe_0000, MemoryKind::Acpi),
        (0x10_0000, MemoryKind::Usable),
        (0xe000_0000, MemoryKind::Reserved),
    ];
    assert_eq!(kinds, expected);
}
