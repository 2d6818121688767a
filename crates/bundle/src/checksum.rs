// SPDX-License-Identifier: MIT OR Apache-2.0
//! CRC-32 as zlib has it, eight bytes at a time. Its tables are made for each file: in the image they would take more
//! than their making takes time.

use alloc::vec;
use alloc::vec::Vec;

/// The polynomial, its bits in the order in which they come.
const POLYNOMIAL: u32 = 0xedb8_8320;
/// Bytes at a time.
const STRIDE: usize = 8;

/// Contribution of a byte to the sum, by the number of bytes that follow it.
type Tables = [[u32; 256]; STRIDE];

/// CRC-32 of a file's bytes, as [`crate::FileRecord::crc32`] states it.
pub fn crc32(bytes: &[u8]) -> u32 {
    let mut sum = Crc32::new();
    sum.add(bytes);
    sum.value()
}

/// The CRC-32 of bytes that come one piece after another.
pub struct Crc32 {
    tables: Vec<[u32; 256]>,
    value: u32,
}

impl Crc32 {
    /// That of no bytes.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Self { tables: tables(), value: !0 }
    }

    /// Adds the next piece.
    pub fn add(&mut self, bytes: &[u8]) {
        // They were made of this length.
        let Some(tables) = self.tables.first_chunk() else { return };
        let (chunks, rest) = bytes.as_chunks::<STRIDE>();
        let value = chunks.iter().fold(self.value, |value, chunk| step(tables, value, *chunk));
        self.value = rest.iter().fold(value, |value, &byte| value >> 8 ^ tables[0][usize::from(value as u8 ^ byte)]);
    }

    /// Returns the checksum of all pieces.
    pub fn value(&self) -> u32 {
        !self.value
    }
}

fn step(tables: &Tables, value: u32, chunk: [u8; STRIDE]) -> u32 {
    let [a, b, c, d, e, f, g, h] = (u64::from_le_bytes(chunk) ^ u64::from(value)).to_le_bytes().map(usize::from);
    // Written out: the crate is built for size.
    let [t0, t1, t2, t3, t4, t5, t6, t7] = tables;
    t7[a] ^ t6[b] ^ t5[c] ^ t4[d] ^ t3[e] ^ t2[f] ^ t1[g] ^ t0[h]
}

/// On the heap: stacks are small.
fn tables() -> Vec<[u32; 256]> {
    let mut tables = vec![[0; 256]; STRIDE];
    for byte in 0..256_u32 {
        let shift = |value: u32, _| value >> 1 ^ if value & 1 != 0 { POLYNOMIAL } else { 0 };
        tables[0][byte as usize] = (0..8).fold(byte, shift);
    }
    for followed in 1..STRIDE {
        for byte in 0..256 {
            let before = tables[followed - 1][byte];
            tables[followed][byte] = before >> 8 ^ tables[0][usize::from(before as u8)];
        }
    }
    tables
}
