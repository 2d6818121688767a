// SPDX-License-Identifier: MIT OR Apache-2.0
//! The checksum of what one release writes and another one reads: messages, records of a hand-over, epitaphs. All of
//! them share one table.

#![no_std]

use crc::{CRC_32_ISO_HDLC, Crc};

/// CRC-32 as in Ethernet (IEEE 802.3-2018, section 3.2.9) and zlib.
pub static CRC_32: Crc<u32> = Crc::<u32>::new(&CRC_32_ISO_HDLC);

#[cfg(test)]
mod tests;
