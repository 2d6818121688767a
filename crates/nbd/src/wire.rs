// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers and formats of the protocol (`doc/proto.md` of the NBD project). All numbers are big-endian.

/// The greeting, and an option.
pub const GREETING: u64 = 0x4e42_444d_4147_4943;
pub const OPTION: u64 = 0x4948_4156_454f_5054;
pub const OPTION_REPLY: u64 = 0x3_e889_0455_65a9;
/// Requests and simple replies.
pub const REQUEST: u32 = 0x2560_9513;
pub const SIMPLE_REPLY: u32 = 0x6744_6698;

/// Handshake flags of both sides.
pub const FIXED_NEWSTYLE: u16 = 1 << 0;
pub const NO_ZEROES: u16 = 1 << 1;

/// The option that begins the transmission phase.
pub const OPTION_GO: u32 = 7;
/// Types of replies to options.
pub const REPLY_ACK: u32 = 1;
pub const REPLY_INFO: u32 = 3;
pub const REPLY_ERROR: u32 = 1 << 31;
/// Types of information.
pub const INFO_EXPORT: u16 = 0;
pub const INFO_BLOCK_SIZE: u16 = 3;

/// Transmission flags.
#[allow(missing_docs)]
pub mod flag {
    pub const HAS_FLAGS: u16 = 1 << 0;
    pub const READ_ONLY: u16 = 1 << 1;
    pub const FLUSH: u16 = 1 << 2;
    pub const FUA: u16 = 1 << 3;
    pub const TRIM: u16 = 1 << 5;
    pub const WRITE_ZEROES: u16 = 1 << 6;
}

/// Commands.
pub const READ: u16 = 0;
pub const WRITE: u16 = 1;
pub const FLUSH: u16 = 3;
pub const TRIM: u16 = 4;
pub const WRITE_ZEROES: u16 = 6;
/// Flags of commands.
pub const FUA: u16 = 1 << 0;
pub const NO_HOLE: u16 = 1 << 1;
/// The server is about to end.
pub const ESHUTDOWN: u32 = 108;

/// Bytes of each structure.
pub const GREETING_BYTES: usize = 18;
pub const OPTION_REPLY_BYTES: usize = 20;
pub const REQUEST_BYTES: usize = 28;
pub const REPLY_BYTES: usize = 16;

/// A request's header.
pub struct Header {
    pub flags: u16,
    pub command: u16,
    pub cookie: u64,
    pub offset: u64,
    pub bytes: u32,
}

impl Header {
    pub fn encode(&self) -> [u8; REQUEST_BYTES] {
        let mut header = [0; REQUEST_BYTES];
        header[..4].copy_from_slice(&REQUEST.to_be_bytes());
        header[4..6].copy_from_slice(&self.flags.to_be_bytes());
        header[6..8].copy_from_slice(&self.command.to_be_bytes());
        header[8..16].copy_from_slice(&self.cookie.to_be_bytes());
        header[16..24].copy_from_slice(&self.offset.to_be_bytes());
        header[24..].copy_from_slice(&self.bytes.to_be_bytes());
        header
    }
}

/// Reads a big-endian number at an offset within `bytes`.
pub fn be16(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u16::from_be_bytes(*bytes))
}

pub fn be32(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

pub fn be64(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u64::from_be_bytes(*bytes))
}
