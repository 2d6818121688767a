// SPDX-License-Identifier: MIT OR Apache-2.0
//! Small kernels made by hand.

use std::vec;
use std::vec::Vec;

pub fn put(image: &mut [u8], at: usize, bytes: &[u8]) {
    image[at..at + bytes.len()].copy_from_slice(bytes);
}

/// A relocatable bzImage of protocol 2.15: one setup sector, 0x400 bytes of kernel at 2 MiB, 64 KiB to unpack.
pub fn bzimage() -> Vec<u8> {
    let mut image = vec![0; 0x400];
    image[0x1f1] = 1;
    put(&mut image, 0x1f4, &(0x400_u32 / 16).to_le_bytes());
    put(&mut image, 0x1fe, &[0x55, 0xaa, 0xeb, 0x6a]);
    put(&mut image, 0x202, b"HdrS");
    put(&mut image, 0x206, &0x020f_u16.to_le_bytes());
    image[0x211] = 1;
    put(&mut image, 0x22c, &0x7fff_ffff_u32.to_le_bytes());
    put(&mut image, 0x230, &0x20_0000_u32.to_le_bytes());
    image[0x234] = 1;
    put(&mut image, 0x236, &1_u16.to_le_bytes());
    put(&mut image, 0x238, &2047_u32.to_le_bytes());
    put(&mut image, 0x258, &0x20_0000_u64.to_le_bytes());
    put(&mut image, 0x260, &0x1_0000_u32.to_le_bytes());
    image.extend((0..0x400_u32).map(|index| index as u8 | 1));
    image
}

/// Magic, flags and checksum.
pub fn multiboot_header(flags: u32) -> [u8; 12] {
    let mut header = [0; 12];
    put(&mut header, 0, &0x1bad_b002_u32.to_le_bytes());
    put(&mut header, 4, &flags.to_le_bytes());
    put(&mut header, 8, &0_u32.wrapping_sub(0x1bad_b002).wrapping_sub(flags).to_le_bytes());
    header
}

/// One program header: type, offset, linear and physical address, file and memory bytes.
pub type Program = (u32, u64, u64, u64, u64, u64);

/// A 64-bit ELF of 0x1000 bytes with these program headers; the file's bytes from 0x800 are 0xcc.
pub fn elf64(entry: u64, programs: &[Program]) -> Vec<u8> {
    let mut image = elf_header(2, 62, entry, programs.len());
    for (index, &(kind, offset, linear, physical, file, memory)) in programs.iter().enumerate() {
        let at = 64 + index * 56;
        put(&mut image, at, &kind.to_le_bytes());
        for (field, value) in [offset, linear, physical, file, memory, 4].into_iter().enumerate() {
            put(&mut image, at + 8 + field * 8, &value.to_le_bytes());
        }
    }
    image
}

/// The same in 32 bits.
pub fn elf32(entry: u32, programs: &[Program]) -> Vec<u8> {
    let mut image = elf_header(1, 3, entry.into(), programs.len());
    for (index, &(kind, offset, linear, physical, file, memory)) in programs.iter().enumerate() {
        let fields = [kind as u64, offset, linear, physical, file, memory, 7, 4];
        for (field, value) in fields.into_iter().enumerate() {
            put(&mut image, 52 + index * 32 + field * 4, &(value as u32).to_le_bytes());
        }
    }
    image
}

fn elf_header(class: u8, machine: u16, entry: u64, programs: usize) -> Vec<u8> {
    let mut image = vec![0; 0x1000];
    image[0x800..].fill(0xcc);
    put(&mut image, 0, &[0x7f, b'E', b'L', b'F', class, 1, 1]);
    put(&mut image, 16, &2_u16.to_le_bytes());
    put(&mut image, 18, &machine.to_le_bytes());
    image[20] = 1;
    if class == 1 {
        put(&mut image, 24, &(entry as u32).to_le_bytes());
        put(&mut image, 28, &52_u32.to_le_bytes());
        put_u16s(&mut image, &[(40, 52), (42, 32), (44, programs as u16)]);
    } else {
        put(&mut image, 24, &entry.to_le_bytes());
        put(&mut image, 32, &64_u64.to_le_bytes());
        put_u16s(&mut image, &[(52, 64), (54, 56), (56, programs as u16)]);
    }
    image
}

fn put_u16s(image: &mut [u8], fields: &[(usize, u16)]) {
    fields.iter().for_each(|(at, value)| put(image, *at, &value.to_le_bytes()));
}

const LOAD: u32 = 1;
const NOTE: u32 = 4;

/// Code at 2 MiB, linked high, with BSS behind it.
pub const CODE: Program = (LOAD, 0x800, 0xffff_ffff_8020_0000, 0x20_0000, 0x100, 0x3000);
/// The same, linked where it lies.
pub const CODE_32: Program = (LOAD, 0x800, 0x20_0000, 0x20_0000, 0x100, 0x3000);

/// The note that makes an ELF file PVH.
pub fn pvh_note(entry: &[u8]) -> Vec<u8> {
    let mut note = Vec::new();
    for word in [4, entry.len() as u32, 18] {
        note.extend_from_slice(&word.to_le_bytes());
    }
    note.extend_from_slice(b"Xen\0");
    note.extend_from_slice(entry);
    note
}

/// A 64-bit PVH kernel whose entry is at 2 MiB + 0x10, as Linux writes it: 64 bits wide.
pub fn pvh_elf() -> Vec<u8> {
    let note = pvh_note(&0x20_0010_u64.to_le_bytes());
    let mut image = elf64(0xffff_ffff_8020_0000, &[CODE, (NOTE, 0x700, 0, 0, note.len() as u64, 0)]);
    put(&mut image, 0x700, &note);
    image
}

/// A 32-bit PVH kernel with a 32-bit note.
pub fn pvh_elf32() -> Vec<u8> {
    let note = pvh_note(&0x20_0010_u32.to_le_bytes());
    let mut image = elf32(0x20_0000, &[(NOTE, 0x700, 0, 0, note.len() as u64, 0), CODE_32]);
    put(&mut image, 0x700, &note);
    image
}

/// A 32-bit Multiboot kernel.
pub fn multiboot_elf() -> Vec<u8> {
    let mut image = elf32(0x20_0004, &[CODE_32]);
    put(&mut image, 0x400, &multiboot_header(0b11));
    image
}

/// A 32-bit Multiboot kernel of these segments, each with 0x100 bytes in the file; it starts where the first begins.
pub fn multiboot_elf_at(segments: &[(u64, u64)]) -> Vec<u8> {
    let program = |&(physical, bytes): &(u64, u64)| (LOAD, 0x800, physical, physical, bytes.min(0x100), bytes);
    let programs: Vec<_> = segments.iter().map(program).collect();
    let mut image = elf32(segments[0].0 as u32, &programs);
    put(&mut image, 0x400, &multiboot_header(0b11));
    image
}

/// A PVH kernel with one more segment.
pub fn pvh_elf_and(physical: u64, bytes: u64) -> Vec<u8> {
    let note = pvh_note(&0x20_0010_u64.to_le_bytes());
    let more = (LOAD, 0x800, physical, physical, bytes.min(0x100), bytes);
    let mut image = elf64(0xffff_ffff_8020_0000, &[CODE, more, (NOTE, 0x700, 0, 0, note.len() as u64, 0)]);
    put(&mut image, 0x700, &note);
    image
}
