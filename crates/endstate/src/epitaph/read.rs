// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading an epitaph from memory that may hold any bytes.

use core::fmt;

use arrayvec::ArrayVec;

use super::format::{
    BACKTRACE_ADDRESSES, CHECKSUM, CHECKSUM_BYTES, MAGIC, MAX_HOST_VERSION_BYTES, MAX_REASON_BYTES, Registers, VERSION,
    at,
};

/// The epitaph of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Epitaph<'a> {
    /// The host's version.
    pub host_version: &'a str,
    /// Time in nanoseconds since that host started.
    pub uptime_ns: u64,
    /// The CPU that owned the end.
    pub cpu: u32,
    /// The reason, and its place.
    pub reason: &'a str,
    /// Its registers, where they were known.
    pub registers: Option<Registers>,
    /// Return addresses, nearest first.
    pub backtrace: ArrayVec<u64, BACKTRACE_ADDRESSES>,
    /// The end of its log, line by line.
    pub tail: &'a str,
}

/// The reason why some bytes hold no epitaph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// No host has left one.
    None,
    /// Its format is of another version.
    Version {
        /// The value found.
        found: u32,
    },
    /// Its length is not a possible one.
    Length {
        /// The value found.
        found: u32,
    },
    /// Memory has not kept it.
    Checksum,
    /// Its checksum is right and its fields contradict each other.
    Fields,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("no host has left an epitaph in memory"),
            Self::Version { found } => {
                write!(f, "the epitaph has format {found}, this host reads {VERSION}: use the host that left it")
            }
            Self::Length { found } => write!(f, "the epitaph cannot be {found} bytes long: it is ignored"),
            Self::Checksum => f.write_str("memory has not kept the epitaph whole: it is ignored"),
            Self::Fields => f.write_str("the epitaph contradicts itself: it is ignored"),
        }
    }
}

impl core::error::Error for Damage {}

impl<'a> Epitaph<'a> {
    /// Reads the epitaph at the beginning of `bytes`.
    pub fn read(bytes: &'a [u8]) -> Result<Self, Damage> {
        if bytes.len() < at::TEXT + CHECKSUM_BYTES || bytes[..MAGIC.len()] != MAGIC {
            return Err(Damage::None);
        }
        let version = u32_at(bytes, at::VERSION);
        if version != VERSION {
            return Err(Damage::Version { found: version });
        }
        let length = u32_at(bytes, at::LENGTH);
        let content = (length as usize).checked_sub(CHECKSUM_BYTES).filter(|end| *end >= at::TEXT);
        let content = content.filter(|end| *end <= bytes.len() - CHECKSUM_BYTES);
        let content = content.ok_or(Damage::Length { found: length })?;
        if CHECKSUM.checksum(&bytes[..content]) != u32_at(bytes, content) {
            return Err(Damage::Checksum);
        }
        Self::fields(&bytes[..content]).ok_or(Damage::Fields)
    }

    /// Reads an epitaph from bytes with a valid checksum, given without it; `None` where one field contradicts another.
    fn fields(bytes: &'a [u8]) -> Option<Self> {
        let (host_version, rest) = text(&bytes[at::TEXT..], bytes, at::HOST_VERSION_BYTES, MAX_HOST_VERSION_BYTES)?;
        let (reason, rest) = text(rest, bytes, at::REASON_BYTES, MAX_REASON_BYTES)?;
        let (tail, rest) = text(rest, bytes, at::TAIL_BYTES, usize::MAX)?;
        let count = u32_at(bytes, at::BACKTRACE_COUNT) as usize;
        let has_registers = u32_at(bytes, at::HAS_REGISTERS);
        if !rest.is_empty() || count > BACKTRACE_ADDRESSES || has_registers > 1 {
            return None;
        }
        let registers = core::array::from_fn(|index| u64_at(bytes, at::REGISTERS_START + index * 8));
        Some(Self {
            host_version,
            uptime_ns: u64_at(bytes, at::TIME),
            cpu: u32_at(bytes, at::CPU),
            reason,
            registers: (has_registers == 1).then_some(registers),
            backtrace: (0..count).map(|index| u64_at(bytes, at::BACKTRACE + index * 8)).collect(),
            tail,
        })
    }
}

/// Returns the text at the beginning of `rest`, with its length from the header at `length_at`, and the bytes after it.
fn text<'a>(rest: &'a [u8], header: &[u8], length_at: usize, max: usize) -> Option<(&'a str, &'a [u8])> {
    let bytes = u32_at(header, length_at) as usize;
    let (text, rest) = rest.split_at_checked(bytes).filter(|_| bytes <= max)?;
    Some((core::str::from_utf8(text).ok()?, rest))
}

/// The caller has made sure that there are four bytes.
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(number)
}

/// The caller has made sure that there are eight bytes.
fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(number)
}
