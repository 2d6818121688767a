// SPDX-License-Identifier: MIT OR Apache-2.0
use super::images::{bzimage, put};
use super::*;
use crate::vcpu::{Gpr, cr0, cr4, efer};

const INFO: u64 = layout::boot::INFO.0;

fn refusal(image: &[u8], mib: u64) -> LoadError {
    load(&memory(mib), image, b"", &[]).unwrap_err()
}

#[test]
fn the_kernel_is_copied_to_its_preferred_address() {
    let memory = memory(8);
    load(&memory, &bzimage(), b"", &[]).unwrap();
    assert_eq!(memory.bytes(Gpa(0x20_0000), 0x400), bzimage()[0x400..]);
}

#[test]
fn the_entry_state_is_64_bit_with_the_zero_page_in_rsi() {
    let state = load(&memory(8), &bzimage(), b"", &[]).unwrap();
    assert_eq!((state.rip, state.gprs[Gpr::Rsi as usize]), (0x20_0200, INFO));
    assert_eq!((state.cr0, state.cr4), (cr0::PE | cr0::ET | cr0::PG, cr4::PAE));
    assert_eq!(state.efer, efer::LME | efer::LMA);
    assert_eq!((state.cs.selector, state.data.selector), (0x10, 0x18));
    assert_eq!((state.cs.rights.packed(), state.data.rights.packed()), (0xa9b, 0xc93));
    assert_eq!(state.rflags, 2);
}

#[test]
fn the_descriptor_table_holds_the_segments() {
    let memory = memory(8);
    let state = load(&memory, &bzimage(), b"", &[]).unwrap();
    assert_eq!(u64_at(&memory, state.gdtr.base + 0x10), 0x00af_9b00_0000_ffff);
    assert_eq!(u64_at(&memory, state.gdtr.base + 0x18), 0x00cf_9300_0000_ffff);
    assert_eq!(state.gdtr.limit, 0x1f);
}

#[test]
fn the_page_tables_map_4_gib_to_themselves() {
    let memory = memory(8);
    let state = load(&memory, &bzimage(), b"", &[]).unwrap();
    for address in [0, 0x20_0200, 0x3fff_ffff, 0x8000_0000, 0xffff_ffff_u64] {
        let directory_pointer = u64_at(&memory, state.cr3) & !0xfff;
        let directory = u64_at(&memory, directory_pointer + (address >> 30) * 8) & !0xfff;
        let entry = u64_at(&memory, directory + (address >> 21 & 0x1ff) * 8);
        assert_eq!(entry & 0x83, 0x83);
        assert_eq!(entry & !0xfff, address & !0x1f_ffff);
    }
}

#[test]
fn the_zero_page_carries_header_command_line_and_rsdp() {
    let memory = memory(8);
    load(&memory, &bzimage(), b"console=ttyS0", &[]).unwrap();
    assert_eq!(memory.bytes(Gpa(INFO + 0x202), 4), b"HdrS");
    assert_eq!(memory.bytes(Gpa(INFO + 0x210), 1), [0xff]);
    assert_eq!(u64_at(&memory, INFO + 0x70), layout::ACPI_TABLES.0);
    let at = u32_at(&memory, INFO + 0x228);
    assert_eq!(memory.bytes(Gpa(at.into()), 14), b"console=ttyS0\0");
}

#[test]
fn the_zero_page_carries_the_memory_map() {
    let memory = memory(8);
    load(&memory, &bzimage(), b"", &[]).unwrap();
    let map = memory_map(8 * MIB);
    assert_eq!(memory.bytes(Gpa(INFO + 0x1e8), 1), [map.len() as u8]);
    for (index, entry) in map.iter().enumerate() {
        let at = INFO + 0x2d0 + index as u64 * 20;
        assert_eq!((u64_at(&memory, at), u64_at(&memory, at + 8)), (entry.start.0, entry.bytes));
        assert_eq!(u32_at(&memory, at + 16), entry.kind as u32);
    }
}

#[test]
fn a_kernel_of_protocol_2_12_is_not_given_the_rsdp() {
    let (memory, mut image) = (memory(8), bzimage());
    put(&mut image, 0x206, &0x020c_u16.to_le_bytes());
    load(&memory, &image, b"", &[]).unwrap();
    assert_eq!(u64_at(&memory, INFO + 0x70), 0);
}

#[test]
fn the_initrd_is_high_in_memory_and_page_aligned() {
    let memory = memory(8);
    load(&memory, &bzimage(), b"", &[module(&[7; 5000])]).unwrap();
    assert_eq!((u32_at(&memory, INFO + 0x218), u32_at(&memory, INFO + 0x21c)), (8 * MIB as u32 - 8192, 5000));
    assert_eq!(memory.bytes(Gpa(8 * MIB - 8192), 5000), [7; 5000]);
}

#[test]
fn several_modules_make_one_initrd() {
    let memory = memory(8);
    load(&memory, &bzimage(), b"", &[module(b"first"), module(b""), module(b"second")]).unwrap();
    let (at, bytes) = (u32_at(&memory, INFO + 0x218), u32_at(&memory, INFO + 0x21c));
    assert_eq!(memory.bytes(Gpa(at.into()), bytes as usize), b"first\0\0\0second\0\0");
}

#[test]
fn the_initrd_stays_below_the_kernels_limit() {
    let (memory, mut image) = (memory(8), bzimage());
    put(&mut image, 0x22c, &0x3f_ffff_u32.to_le_bytes());
    load(&memory, &image, b"", &[module(&[7; 4096])]).unwrap();
    assert_eq!(u32_at(&memory, INFO + 0x218), 0x3f_f000);
}

#[test]
fn an_initrd_that_would_overlap_the_kernel_is_refused_with_the_hint() {
    let initrd = std::vec![0; 5 * MIB as usize];
    let refused = load(&memory(4), &bzimage(), b"", &[module(&initrd)]).unwrap_err();
    let expected =
        "initrd (5 MiB) does not fit into 4 MiB of guest memory: give the guest memory >= 8 MiB or a smaller initrd";
    assert_eq!(refused.to_string(), expected);
    assert_eq!(load(&memory(8), &bzimage(), b"", &[module(&initrd)]).err(), None);
}

#[test]
fn the_room_a_kernel_needs_to_unpack_must_be_there() {
    let mut image = bzimage();
    put(&mut image, 0x260, &(6 * MIB as u32).to_le_bytes());
    let expected = "kernel does not fit into 7 MiB of guest memory: give the guest memory >= 8 MiB";
    assert_eq!(refusal(&image, 7).to_string(), expected);
    assert!(load(&memory(8), &image, b"", &[]).is_ok());
}

#[test]
fn a_kernel_that_cannot_move_keeps_its_address() {
    let mut image = bzimage();
    image[0x234] = 0;
    put(&mut image, 0x258, &0x21_0000_u64.to_le_bytes());
    assert_eq!(load(&memory(8), &image, b"", &[]).unwrap().rip, 0x21_0200);
    put(&mut image, 0x258, &0x6000_u64.to_le_bytes());
    assert_eq!(refusal(&image, 8), LoadError::BadLinuxHeader { reason: "pref_address is below 1 MiB" });
    put(&mut image, 0x258, &0x21_0000_u64.to_le_bytes());
    image[0x234] = 1;
    assert_eq!(load(&memory(8), &image, b"", &[]).unwrap().rip, 0x40_0200);
}

#[test]
fn a_cut_off_image_is_refused() {
    let image = bzimage();
    assert_eq!(
        refusal(&image[..0x250], 8),
        LoadError::Truncated { part: "setup header", needed_bytes: 0x268, present_bytes: 0x250 }
    );
    assert!(matches!(refusal(&image[..0x600], 8), LoadError::Truncated { part: "kernel", .. }));
}

#[test]
fn a_last_paragraph_may_be_partly_missing() {
    let image = bzimage();
    assert!(load(&memory(8), &image[..image.len() - 15], b"", &[]).is_ok());
    assert!(load(&memory(8), &image[..image.len() - 16], b"", &[]).is_err());
}

#[test]
fn an_old_kernel_is_refused() {
    let mut image = bzimage();
    put(&mut image, 0x206, &0x020b_u16.to_le_bytes());
    assert!(refusal(&image, 8).to_string().starts_with("Linux boot protocol 2.11 is too old"));
}

#[test]
fn a_kernel_without_64_bit_entry_is_refused() {
    let mut image = bzimage();
    image[0x236] = 0;
    assert_eq!(refusal(&image, 8), LoadError::No64BitEntry);
}

#[test]
fn a_command_line_longer_than_the_kernel_takes_is_refused() {
    let refused = load(&memory(8), &bzimage(), &[b'a'; 2048], &[]).unwrap_err();
    assert_eq!(refused, LoadError::CommandLineTooLong { bytes: 2048, limit_bytes: 2047 });
    assert!(load(&memory(8), &bzimage(), &[b'a'; 2047], &[]).is_ok());
}

#[test]
fn nonsense_in_the_header_is_refused() {
    for (at, bytes) in [
        (0x230, 3_u64.to_le_bytes()),
        (0x258, u64::MAX.to_le_bytes()),
        (0x1f4, 0_u64.to_le_bytes()),
        (0x260, u64::MAX.to_le_bytes()),
    ] {
        let mut image = bzimage();
        let width = if at == 0x258 { 8 } else { 4 };
        put(&mut image, at, &bytes[..width]);
        refusal(&image, 8);
    }
}
