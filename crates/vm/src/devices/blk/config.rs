// SPDX-License-Identifier: MIT OR Apache-2.0
//! Features and configuration (sections 5.2.3 and 5.2.4).

use nbd::Export;

pub const SIZE_MAX: u64 = 1 << 1;
pub const SEG_MAX: u64 = 1 << 2;
pub const RO: u64 = 1 << 5;
pub const BLK_SIZE: u64 = 1 << 6;
pub const FLUSH: u64 = 1 << 9;
pub const DISCARD: u64 = 1 << 13;
pub const WRITE_ZEROES: u64 = 1 << 14;

/// Bytes of a sector, in which the protocol counts whatever the size of blocks is.
pub const SECTOR_BYTES: u64 = 512;
/// Bytes of the configuration.
pub const BYTES: usize = 60;
/// Segments of a request's data, and bytes of each. Header and status are two more descriptors.
pub const SEGMENTS: u32 = 126;
const SEGMENT_BYTES: u32 = 64 << 10;
/// Sectors of one request to discard or to zero.
const RANGE_SECTORS: u32 = 64 << 11;

/// The features of a device.
pub fn features(is_read_only: bool, is_write_back: bool) -> u64 {
    let changes = if is_read_only { RO } else { DISCARD | WRITE_ZEROES };
    SIZE_MAX | SEG_MAX | BLK_SIZE | changes | if is_write_back { FLUSH } else { 0 }
}

/// The configuration of a disk: one of which nothing is known yet has no sectors.
pub fn bytes(export: Option<&Export>) -> [u8; BYTES] {
    let block = block_bytes(export);
    let sectors = export.map_or(0, |export| export.bytes / u64::from(block)) * (u64::from(block) / SECTOR_BYTES);
    let mut config = [0; BYTES];
    let mut put = |at: usize, bytes: &[u8]| config[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &sectors.to_le_bytes());
    put(8, &SEGMENT_BYTES.to_le_bytes());
    put(12, &SEGMENTS.to_le_bytes());
    put(20, &block.to_le_bytes());
    // Discard: sectors, segments, alignment. Write zeroes: sectors, segments, may unmap.
    put(36, &RANGE_SECTORS.to_le_bytes());
    put(40, &1u32.to_le_bytes());
    put(44, &(block / SECTOR_BYTES as u32).to_le_bytes());
    put(48, &RANGE_SECTORS.to_le_bytes());
    put(52, &1u32.to_le_bytes());
    put(56, &[1]);
    config
}

/// The size of a disk's blocks.
fn block_bytes(export: Option<&Export>) -> u32 {
    export.map_or(0, |export| export.block).max(SECTOR_BYTES as u32)
}
