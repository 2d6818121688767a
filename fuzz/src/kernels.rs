// SPDX-License-Identifier: MIT OR Apache-2.0
//! Small kernels of every kind, as something to change.

use crate::input::Input;

const LOAD: u32 = 1;
const NOTE: u32 = 4;
const ADDRESS: u64 = 0x20_0000;

/// The kernel with this number, if it is one's.
pub fn template(number: u8) -> Option<Vec<u8>> {
    Some(match number & 7 {
        0 => bzimage(),
        1 => elf(2, 62),
        2 => elf(1, 3),
        3 => multiboot(elf(1, 3)),
        4 => multiboot(vec![0; 0x800]),
        _ => return None,
    })
}

/// The image with some fields changed, cut short or made longer.
pub fn changed(mut image: Vec<u8>, input: &mut Input<'_>) -> Vec<u8> {
    if input.bool() {
        image.resize(usize::from(input.u16()), 0xcc);
    }
    while !input.is_empty() && !image.is_empty() {
        let (at, wide) = (usize::from(input.u16()) % image.len(), input.u8() & 3);
        let value = input.number().to_le_bytes();
        let bytes = (1 << wide).min(image.len() - at);
        image[at..at + bytes].copy_from_slice(&value[..bytes]);
    }
    image
}

fn put(image: &mut [u8], fields: &[(usize, &[u8])]) {
    fields.iter().for_each(|(at, bytes)| image[*at..at + bytes.len()].copy_from_slice(bytes));
}

/// A relocatable Linux bzImage of protocol 2.15 with one setup sector.
fn bzimage() -> Vec<u8> {
    let mut image = vec![0; 0x800];
    let fields: [(usize, &[u8]); 12] = [
        (0x1f1, &[1]),
        (0x1f4, &[0x40]),
        (0x1fe, &[0x55, 0xaa, 0xeb, 0x6a]),
        (0x202, b"HdrS"),
        (0x206, &[0x0f, 0x02]),
        (0x211, &[1]),
        (0x22c, &[0xff, 0xff, 0xff, 0x7f]),
        (0x230, &[0, 0, 0x20]),
        (0x234, &[1, 0, 1]),
        (0x238, &[0xff, 0x07]),
        (0x258, &[0, 0, 0x20]),
        (0x260, &[0, 0, 1]),
    ];
    put(&mut image, &fields);
    image
}

/// An ELF file of 64 bits (class 2) or 32 with a segment and the note that makes it PVH.
fn elf(class: u8, machine: u8) -> Vec<u8> {
    let mut image = vec![0; 0x1000];
    let is_64_bit = class == 2;
    put(&mut image, &[(0, &[0x7f, b'E', b'L', b'F', class, 1, 1]), (16, &[2]), (18, &[machine]), (20, &[1])]);
    let (counts, table): (usize, u8) = if is_64_bit { (52, 64) } else { (40, 52) };
    let entry_bytes = if is_64_bit { 56 } else { 32 };
    put(&mut image, &[(24, &[0, 0, 0x20]), (if is_64_bit { 32 } else { 28 }, &[table])]);
    put(&mut image, &[(counts, &[table]), (counts + 2, &[entry_bytes]), (counts + 4, &[2])]);
    let programs = [(LOAD, 0x800, ADDRESS, 0x100, 0x3000), (NOTE, 0x700, 0, 24, 0)];
    for (index, (kind, offset, address, file, memory)) in programs.into_iter().enumerate() {
        let at = usize::from(table) + index * usize::from(entry_bytes);
        put(&mut image, &[(at, &u32::to_le_bytes(kind))]);
        for (field, value) in [offset, address, address, file, memory].into_iter().enumerate() {
            if is_64_bit {
                put(&mut image, &[(at + 8 + field * 8, &u64::to_le_bytes(value))]);
            } else {
                put(&mut image, &[(at + 4 + field * 4, &(value as u32).to_le_bytes())]);
            }
        }
    }
    put(&mut image, &[(0x700, &[4, 0, 0, 0, 8, 0, 0, 0, 18]), (0x70c, b"Xen\0"), (0x710, &[0x10, 0, 0x20])]);
    image
}

/// The image with a Multiboot header, for an ELF file or, with addresses in the header, for any.
fn multiboot(mut image: Vec<u8>) -> Vec<u8> {
    let flags = if image.starts_with(b"\x7fELF") { 0b11u32 } else { 1 << 16 };
    let checksum = 0u32.wrapping_sub(0x1bad_b002).wrapping_sub(flags);
    let words = [0x1bad_b002, flags, checksum, 0x20_0400, 0x20_0000, 0, 0x20_2000, 0x20_0430];
    for (index, word) in words.into_iter().enumerate() {
        put(&mut image, &[(0x400 + index * 4, &word.to_le_bytes())]);
    }
    // Without the note it is no PVH kernel.
    if image.starts_with(b"\x7fELF") {
        put(&mut image, &[(0x708, &[0])]);
    }
    image
}
