// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bytes of an epitaph.
//!
//! # The format, version 1
//!
//! Numbers are little endian.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 8 | `BatonEnd` |
//! | 8 | 4 | version |
//! | 12 | 4 | bytes of all of it, checksum included |
//! | 16 | 8 | time of the end, in nanoseconds since the host started |
//! | 24 | 4 | CPU |
//! | 28 | 4 | return addresses that are known, at most 24 |
//! | 32 | 4 | 1 if the registers are known, else 0 |
//! | 36 | 4 | bytes of the host's version |
//! | 40 | 4 | bytes of the reason |
//! | 44 | 4 | bytes of the log's end |
//! | 48 | 176 | registers, in the order of [`REGISTERS`] |
//! | 224 | 192 | return addresses, nearest first |
//! | 416 | | the host's version, the reason, the log's end (whole lines, each ended by a line feed): UTF-8 |
//! | last 4 | 4 | CRC-32 (ISO HDLC) of everything before it |

/// Bytes of memory set aside for it.
pub const EPITAPH_BYTES: usize = 16 * 1024;
/// Return addresses that are kept.
pub const BACKTRACE_ADDRESSES: usize = 24;
/// The registers that are kept, in order.
pub const REGISTERS: [&str; 22] = [
    "rip", "rsp", "rflags", "cs", "ss", "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "r8", "r9", "r10", "r11",
    "r12", "r13", "r14", "r15", "cr2", "error",
];
/// Their values.
pub type Registers = [u64; REGISTERS.len()];

/// The version of the format that this code writes and reads.
pub const VERSION: u32 = 1;
pub(super) const MAGIC: [u8; 8] = *b"BatonEnd";
/// Bytes of the host's version at most.
pub(super) const MAX_HOST_VERSION_BYTES: usize = 32;
/// Bytes of the reason at most.
pub(super) const MAX_REASON_BYTES: usize = 512;
pub(super) const CHECKSUM_BYTES: usize = 4;

/// Offset of each field in bytes.
pub(super) mod at {
    use super::{BACKTRACE_ADDRESSES, REGISTERS};

    pub const VERSION: usize = 8;
    pub const LENGTH: usize = 12;
    pub const TIME: usize = 16;
    pub const CPU: usize = 24;
    pub const BACKTRACE_COUNT: usize = 28;
    pub const HAS_REGISTERS: usize = 32;
    pub const HOST_VERSION_BYTES: usize = 36;
    pub const REASON_BYTES: usize = 40;
    pub const TAIL_BYTES: usize = 44;
    pub const REGISTERS_START: usize = 48;
    pub const BACKTRACE: usize = REGISTERS_START + REGISTERS.len() * 8;
    pub const TEXT: usize = BACKTRACE + BACKTRACE_ADDRESSES * 8;
}

const _: () = assert!(at::BACKTRACE == 224 && at::TEXT == 416);
const _: () = assert!(at::TEXT + MAX_HOST_VERSION_BYTES + MAX_REASON_BYTES + CHECKSUM_BYTES <= EPITAPH_BYTES / 2);

/// Of everything before it.
pub(super) use checksum::CRC_32 as CHECKSUM;
