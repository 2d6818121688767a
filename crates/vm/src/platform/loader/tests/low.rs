// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernels below 1 MiB: the boot structures make room for them.
use super::images::{multiboot_elf_at, multiboot_header, put, pvh_elf_and};
use super::*;
use crate::vcpu::Gpr;

const USUAL: u64 = layout::boot::INFO.0;

/// Loads a Multiboot kernel, and checks that it, its information and what that points to are whole. Returns where the
/// information is.
fn loaded(segments: &[(u64, u64)], memory: &FakeMemory) -> u64 {
    for (start, bytes) in segments {
        memory.write(Gpa(*start), &std::vec![0xee; *bytes as usize]).unwrap();
    }
    let module = Module { bytes: &[9; 100], command_line: b"m" };
    let state = load(memory, &multiboot_elf_at(segments), b"-x", &[module]).unwrap();
    assert_eq!(state.rip, segments[0].0);
    for (start, bytes) in segments {
        let copied = (*bytes).min(0x100) as usize;
        assert_eq!(memory.bytes(Gpa(*start), copied), std::vec![0xcc; copied], "what the file holds, at {start:#x}");
        let rest = memory.bytes(Gpa(start + copied as u64), *bytes as usize - copied);
        assert!(rest.iter().all(|byte| *byte == 0), "the rest at {start:#x} is zero");
    }
    let info = state.gprs[Gpr::Rbx as usize];
    let word = |at| u64::from(u32_at(memory, info + at));
    assert_eq!(memory.bytes(Gpa(word(16)), 3), b"-x\0");
    assert_eq!(memory.bytes(Gpa(word(64)), 6), b"Baton\0");
    let [start, end, line] = [0, 4, 8].map(|at| u64::from(u32_at(memory, word(24) + at)));
    assert_eq!((word(20), memory.bytes(Gpa(start), (end - start) as usize)), (1, std::vec![9; 100]));
    assert!(start >= MIB, "modules lie at 1 MiB or above");
    assert_eq!(memory.bytes(Gpa(line), 2), b"m\0");
    assert_eq!(u32_at(memory, word(48)), 20, "the first entry of the map");
    assert_eq!(memory.bytes(Gpa(state.gdtr.base + 16), 8), [0xff, 0xff, 0, 0, 0, 0x9b, 0xcf, 0], "the code descriptor");
    info
}

#[test]
fn a_kernel_beside_the_boot_structures_leaves_them_where_they_are() {
    for kernel in [(0, 0x6000), (0x9000, 0x1_7000), (0x3_0000, 0x7_0000), (0x7_c000, 0x200)] {
        assert_eq!(loaded(&[kernel], &memory(4)), USUAL, "{kernel:x?}");
    }
}

#[test]
fn boot_structures_are_placed_around_a_kernel_that_lies_there() {
    for (kernel, info) in [((0x7c00, 0x200), 0x2000), ((0x1000, 0x8000), 0xa000), ((0x8fff, 1), 0x2000)] {
        assert_eq!(loaded(&[kernel], &memory(4)), info, "{kernel:x?}");
    }
    let lines = loaded(&[(0x2_8000, 0x10)], &memory(4));
    assert_eq!(lines, USUAL, "only the command lines are in the way");
}

#[test]
fn a_kernel_that_fills_the_memory_below_640_kib_has_its_structures_behind_1_mib() {
    assert_eq!(loaded(&[(0, 0xa_0000)], &memory(4)), 0x10_1000);
    assert_eq!(loaded(&[(0x20_0000, 0x10_0001), (0, 0xa_0000)], &memory(8)), 0x30_2000, "behind its other segment");
}

#[test]
fn a_kernel_that_leaves_no_place_for_the_structures_is_refused() {
    let image = multiboot_elf_at(&[(0, 0xa_0000), (0x10_0000, 0x30_0000 - 0x1000)]);
    let refused = load(&memory(4), &image, b"", &[]).unwrap_err();
    assert_eq!(refused.to_string(), "kernel does not fit into 4 MiB of guest memory: give the guest memory >= 5 MiB");
}

#[test]
fn a_kernel_that_names_its_own_addresses_may_lie_low_too() {
    let mut image = std::vec![0x90; 0x200];
    put(&mut image, 0x10, &multiboot_header(1 << 16));
    for (index, address) in [0x7c10_u32, 0x7c00, 0, 0, 0x7c40].into_iter().enumerate() {
        put(&mut image, 0x1c + index * 4, &address.to_le_bytes());
    }
    let memory = memory(4);
    assert_eq!(load(&memory, &image, b"", &[]).unwrap().rip, 0x7c40);
    assert_eq!(memory.bytes(Gpa(0x7c40), 0x1c0), [0x90; 0x1c0]);
}

#[test]
fn a_pvh_kernel_may_have_a_segment_there_too() {
    let memory = memory(8);
    let state = load(&memory, &pvh_elf_and(0x6000, 0x3000), b"quiet", &[module(b"x")]).unwrap();
    let info = state.gprs[Gpr::Rbx as usize];
    assert_eq!((info, u32_at(&memory, info)), (0x2000, 0x336e_c578));
    assert_eq!(memory.bytes(Gpa(u64_at(&memory, info + 24)), 6), b"quiet\0");
    assert_eq!(memory.bytes(Gpa(0x6000), 0x100), [0xcc; 0x100]);
}

#[test]
fn memory_that_a_pc_has_for_other_things_is_refused_with_its_place() {
    let refused = load(&memory(4), &multiboot_elf_at(&[(0xb_8000, 0x1000)]), b"", &[]).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "kernel part from 0xb8000 to 0xb9000 reaches between 640 KiB and 1 MiB, where a PC has video memory, ROMs and \
         ACPI tables: link it below 640 KiB, or at 1 MiB or above"
    );
}
