// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reasons why an image or a record is refused.

use core::fmt;

use units::ByteSize;

use crate::layout::{Kind, OLDEST_VERSION, VERSION};

/// The reason why an image cannot replace the running one. Nothing has stopped or changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageError {
    /// No ELF file, or one that is damaged: the reason.
    BadElf(&'static str),
    /// For another machine: ELF's number for it.
    WrongMachine(u16),
    /// A segment ends behind the end of the file.
    Truncated {
        /// Bytes the file must have.
        needed_bytes: u64,
        /// Bytes it has.
        present_bytes: u64,
    },
    /// A segment lies where an image's segments cannot.
    BadSegment {
        /// Its physical address in the file.
        address: u64,
        /// The reason.
        reason: &'static str,
    },
    /// Larger than a slot.
    TooLarge {
        /// Bytes of memory it wants.
        bytes: u64,
    },
    /// It has no note of Baton's: it cannot be entered from a running host.
    NoNote,
    /// Its note is too short.
    BadNote,
    /// Its warm entry is not in its code.
    EntryOutside {
        /// Entry address.
        address: u64,
    },
    /// It does not read the versions that this image writes.
    OtherVersions {
        /// The oldest hand-over version that it reads.
        oldest: u32,
        /// The newest.
        newest: u32,
    },
}

impl fmt::Display for ImageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadElf(what) => write!(f, "it is no usable ELF file: {what}"),
            Self::WrongMachine(machine) => write!(f, "it is for another machine (ELF machine {machine}, not 62)"),
            Self::Truncated { needed_bytes, present_bytes } => {
                write!(f, "it is cut off: {present_bytes} of {needed_bytes} bytes are there")
            }
            Self::BadSegment { address, reason } => write!(f, "its segment at {address:#x} {reason}"),
            Self::TooLarge { bytes } => write!(f, "it needs {} of memory, more than an image may", ByteSize(*bytes)),
            Self::NoNote => f.write_str("it has no note of Baton's, so it cannot be entered from a running host"),
            Self::BadNote => f.write_str("its note of Baton's is too short"),
            Self::EntryOutside { address } => write!(f, "its entry {address:#x} is not in its code"),
            Self::OtherVersions { oldest, newest } => {
                write!(
                    f,
                    "it reads hand-over versions {oldest} to {newest}, and this host writes {OLDEST_VERSION} to \
                     {VERSION}"
                )
            }
        }
    }
}

impl core::error::Error for ImageError {}

/// The reason why a record cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordError {
    /// It does not begin with a record's header.
    BadMagic,
    /// Of a version that is not read here.
    OtherVersion(u32),
    /// Its length is impossible.
    BadLength(u64),
    /// It was damaged.
    BadChecksum,
    /// A section passes the end.
    CutSection {
        /// The section's kind.
        kind: u32,
    },
    /// The sections do not add up to the length in the header.
    BadCount,
    /// A section that this reader must know, and does not.
    UnknownSection(u32),
    /// A section is there twice.
    Duplicate(Kind),
    /// A section is missing.
    Missing(Kind),
    /// Its content is impossible.
    BadSection(Kind),
    /// A guest, its memory or a block has an impossible value.
    BadGuest {
        /// Its section.
        kind: Kind,
        /// The guest's number.
        guest: u32,
        /// The reason.
        reason: &'static str,
    },
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadMagic => f.write_str("it does not begin as a hand-over record does"),
            Self::OtherVersion(version) => {
                write!(f, "it has version {version}, and versions {OLDEST_VERSION} to {VERSION} are read")
            }
            Self::BadLength(bytes) => write!(f, "its length in the header, {bytes} bytes, is wrong"),
            Self::BadChecksum => f.write_str("its checksum is wrong"),
            Self::CutSection { kind } => write!(f, "section {kind} passes its end"),
            Self::BadCount => f.write_str("its number of sections differs from its header"),
            Self::UnknownSection(kind) => write!(f, "section {kind} must be understood, and is not known"),
            Self::Duplicate(kind) => write!(f, "section {kind:?} is there twice"),
            Self::Missing(kind) => write!(f, "section {kind:?} is missing"),
            Self::BadSection(kind) => write!(f, "section {kind:?} has an impossible value"),
            Self::BadGuest { kind, guest, reason } => write!(f, "section {kind:?}, guest {guest}: {reason}"),
        }
    }
}

impl core::error::Error for RecordError {}
