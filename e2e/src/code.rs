// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests of a few bytes, for what no other guest does.

/// Load address of the code.
const BASE: u32 = 0x10_0000;
/// Bytes of the header in front of the code.
const HEADER_BYTES: u32 = 32;

/// A Multiboot 1 image of this 32-bit code (Multiboot 0.6.96, section 3.1: the header names all addresses itself).
pub fn multiboot(code: &[u8]) -> Vec<u8> {
    let (magic, flags) = (0x1bad_b002_u32, 0x1_0000_u32);
    let checksum = 0_u32.wrapping_sub(magic).wrapping_sub(flags);
    let end = BASE + HEADER_BYTES + code.len() as u32;
    let header = [magic, flags, checksum, BASE, BASE, end, end, BASE + HEADER_BYTES];
    header.into_iter().flat_map(u32::to_le_bytes).chain(code.iter().copied()).collect()
}
