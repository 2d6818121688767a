// SPDX-License-Identifier: MIT OR Apache-2.0
use super::images::{CODE, elf64, put, pvh_elf, pvh_elf32, pvh_note};
use super::*;
use crate::vcpu::{Gpr, cr0};

const INFO: u64 = layout::boot::INFO.0;

#[test]
fn both_classes_start_at_the_notes_entry_in_protected_mode() {
    for image in [pvh_elf(), pvh_elf32()] {
        let state = load(&memory(8), &image, b"", &[]).unwrap();
        assert_eq!((state.rip, state.gprs[Gpr::Rbx as usize]), (0x20_0010, INFO));
        assert_eq!((state.cr0, state.cr4, state.efer), (cr0::PE | cr0::ET, 0, 0));
        assert_eq!((state.cs.attributes, state.cs.limit, state.tr.limit), (0xc9b, u32::MAX, 0x67));
    }
}

#[test]
fn segments_are_copied_and_the_rest_of_their_memory_is_zero() {
    let memory = memory(8);
    memory.write(Gpa(0x20_0000), &[0xee; 0x4000]).unwrap();
    load(&memory, &pvh_elf(), b"", &[]).unwrap();
    assert_eq!(memory.bytes(Gpa(0x20_0000), 0x100), [0xcc; 0x100]);
    assert_eq!(memory.bytes(Gpa(0x20_0100), 0x2f00), [0; 0x2f00]);
    assert_eq!(memory.bytes(Gpa(0x20_3000), 1), [0xee]);
}

#[test]
fn an_image_at_an_odd_address_loads_as_well() {
    let mut shifted = std::vec![0];
    shifted.extend(pvh_elf());
    assert!(load(&memory(8), &shifted[1..], b"", &[]).is_ok());
}

#[test]
fn the_start_info_names_command_line_map_modules_and_rsdp() {
    let memory = memory(8);
    let modules = [Module { bytes: &[7; 5000], command_line: b"one" }, module(&[8; 10])];
    load(&memory, &pvh_elf(), b"quiet", &modules).unwrap();
    assert_eq!([0, 4, 8, 12].map(|at| u32_at(&memory, INFO + at)), [0x336e_c578, 1, 0, 2]);
    let [list, line, rsdp, map] = [16, 24, 32, 40].map(|at| u64_at(&memory, INFO + at));
    assert_eq!(memory.bytes(Gpa(line), 6), b"quiet\0");
    assert_eq!(rsdp, layout::ACPI_TABLES.0);
    let expected = memory_map(8 * MIB);
    assert_eq!(u32_at(&memory, INFO + 48) as usize, expected.len());
    let first = [u64_at(&memory, map + 24), u64_at(&memory, map + 32), u32_at(&memory, map + 40).into()];
    assert_eq!(first, [expected[1].start.0, expected[1].bytes, expected[1].kind as u64]);
    let [start, bytes, own_line, _] = [0, 8, 16, 24].map(|at| u64_at(&memory, list + at));
    assert_eq!((start % 4096, bytes), (0, 5000));
    assert_eq!(memory.bytes(Gpa(start), 5000), [7; 5000]);
    assert_eq!(memory.bytes(Gpa(own_line), 4), b"one\0");
}

#[test]
fn segments_that_overlap_are_refused() {
    let mut image = elf64(0, &[CODE, (1, 0x800, 0, 0x20_2000, 0x10, 0x10), (4, 0x700, 0, 0, 24, 0)]);
    put(&mut image, 0x700, &pvh_note(&[0x10, 0, 0x20, 0, 0, 0, 0, 0]));
    let refused = load(&memory(8), &image, b"", &[]);
    assert_eq!(refused, Err(LoadError::SegmentsOverlap { address: Gpa(0x20_2000) }));
}

#[test]
fn segments_outside_the_kernels_place_are_refused() {
    let refusal = |physical: u64, bytes: u64| {
        let mut image = elf64(0, &[(1, 0x800, 0, physical, 0, bytes), CODE, (4, 0x700, 0, 0, 24, 0)]);
        put(&mut image, 0x700, &pvh_note(&[0x10, 0, 0x20, 0, 0, 0, 0, 0]));
        load(&memory(8), &image, b"", &[]).unwrap_err()
    };
    let reserved = |address, end| LoadError::InReservedMemory { address: Gpa(address), end };
    assert_eq!(refusal(0x9_fff8, 16), reserved(0x9_fff8, 0xa_0008), "into video memory");
    assert_eq!(refusal(0xe_0000, 16), reserved(0xe_0000, 0xe_0010), "ACPI tables");
    assert_eq!(refusal(0xf_fff8, 16), reserved(0xf_fff8, 0x10_0008), "the reset vector");
    assert_eq!(refusal(0x1000, 0x20_0000), reserved(0x1000, 0x20_1000), "across all of it");
    assert_eq!(refusal(8 * MIB - 8, 16), LoadError::KernelTooLarge { end: 8 * MIB + 8, memory_bytes: 8 * MIB });
    assert_eq!(refusal(0xc000_0000, 1), LoadError::InPciHole { end: 0xc000_0001 });
    assert_eq!(refusal(u64::MAX - 3, 16), LoadError::InPciHole { end: u64::MAX });
}

#[test]
fn an_entry_in_no_segment_is_refused() {
    let mut image = pvh_elf();
    put(&mut image, 0x700, &pvh_note(&[0, 0, 0x30, 0, 0, 0, 0, 0]));
    assert_eq!(load(&memory(8), &image, b"", &[]), Err(LoadError::EntryOutside { address: 0x30_0000 }));
}

#[test]
fn an_elf_for_another_cpu_is_refused() {
    let mut image = pvh_elf();
    image[18] = 183;
    let refused = load(&memory(8), &image, b"", &[]);
    assert_eq!(refused, Err(LoadError::BadElf { reason: "it is not for x86" }));
}

#[test]
fn modules_that_do_not_fit_are_refused_with_the_hint() {
    let big = std::vec![1; 3 * MIB as usize];
    let refused = load(&memory(8), &pvh_elf(), b"", &[module(&big), module(&big)]).unwrap_err();
    let expected =
        "module (3 MiB) does not fit into 8 MiB of guest memory: give the guest memory >= 9 MiB or a smaller module";
    assert_eq!(refused.to_string(), expected);
    assert!(load(&memory(9), &pvh_elf(), b"", &[module(&big), module(&big)]).is_ok());
}

#[test]
fn too_many_modules_are_refused() {
    let modules = [module(b"x"); MAX_MODULES + 1];
    assert_eq!(load(&memory(8), &pvh_elf(), b"", &modules), Err(LoadError::TooManyModules { count: 33 }));
    assert!(load(&memory(8), &pvh_elf(), b"", &modules[1..]).is_ok());
}

#[test]
fn command_lines_that_fill_their_area_are_refused() {
    let line = std::vec![b'a'; 0x8000];
    let modules = [Module { bytes: b"", command_line: &line }];
    let refused = load(&memory(8), &pvh_elf(), &line, &modules);
    assert_eq!(refused, Err(LoadError::CommandLinesTooLong { limit_bytes: 0x1_0000 }));
}
