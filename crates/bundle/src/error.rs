// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of a bundle.

use alloc::string::String;
use core::fmt;

use crate::limits;
use crate::manifest::{MANIFEST_VERSION, OLDEST_MANIFEST_VERSION};

/// A bundle that cannot be used, or a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundleError {
    /// The entry it is about; empty while no name could be read.
    pub entry: String,
    /// Offset of the entry, in bytes from the start of the bundle.
    pub offset_bytes: usize,
    /// The problem with it.
    pub problem: Problem,
}

/// A field of an entry's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderField {
    /// The length of its name.
    NameSize,
    /// The length of its content.
    FileSize,
}

/// The problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// There is no entry at an offset at which one should begin.
    NoArchive,
    /// The bundle ends within the entry.
    Truncated {
        /// Bytes that are missing at least.
        missing_bytes: usize,
    },
    /// A field of the header is no hexadecimal number.
    BadNumber(HeaderField),
    /// The name is empty, too long, or not UTF-8 ending in one zero.
    BadName,
    /// There are more entries than [`limits::FILES`].
    TooManyFiles,
    /// The first entry is another, or too short or too long for a manifest.
    NoManifest,
    /// The manifest is of another version.
    UnknownVersion {
        /// Its version.
        found: u16,
    },
    /// The bytes are not those that were written.
    BadChecksum {
        /// Checksum in the manifest.
        stated: u32,
        /// Checksum of the bytes.
        computed: u32,
    },
    /// The manifest is whole and yet cannot be decoded.
    Malformed,
    /// The archive's entry and the manifest's record of it differ.
    NotAsListed,
    /// A file that is referred to is not in the bundle.
    Missing,
    /// A name stands twice.
    Duplicate,
    /// There are more guests than [`limits::GUESTS`].
    TooManyGuests,
    /// There are more networks than [`limits::NETWORKS`].
    TooManyNetworks,
    /// There are more keys than [`limits::TRUSTED_KEYS`].
    TooManyKeys,
    /// See [`limits::CONTROL_GUESTS`].
    TooManyControlGuests,
    /// The file is longer than the archive's format can state.
    FileTooLong,
    /// A network's setting is not possible.
    BadNetwork {
        /// Name of the network.
        network: String,
        /// The reason, and the possible values.
        reason: &'static str,
    },
    /// A control key is not possible.
    BadControlKey {
        /// Its name.
        key: String,
        /// The reason, and the possible values.
        reason: &'static str,
    },
    /// A guest's setting is not possible.
    BadGuest {
        /// Name of the guest.
        guest: String,
        /// The reason, and the possible values.
        reason: &'static str,
    },
}

impl fmt::Display for BundleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.entry.as_str() {
            "" => write!(f, "bundle, at byte {}: ", self.offset_bytes)?,
            entry => write!(f, "bundle entry {entry:?} at byte {}: ", self.offset_bytes)?,
        }
        write!(f, "{}; {}", self.problem, self.problem.hint())
    }
}

impl core::error::Error for BundleError {}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoArchive => write!(f, "this is no cpio archive of the newc kind"),
            Self::Truncated { missing_bytes } => write!(f, "the bundle ends {missing_bytes} bytes too early"),
            Self::BadNumber(HeaderField::NameSize) => write!(f, "the length of the name is no hexadecimal number"),
            Self::BadNumber(HeaderField::FileSize) => write!(f, "the length of the file is no hexadecimal number"),
            Self::BadName => write!(f, "the name is no text of 1 to {} bytes", limits::FILE_NAME_BYTES),
            Self::TooManyFiles => write!(f, "there are more than {} files", limits::FILES),
            Self::NoManifest => write!(f, "the first entry is no manifest"),
            Self::UnknownVersion { found } => {
                write!(
                    f,
                    "the manifest is of version {found}, this host reads versions {OLDEST_MANIFEST_VERSION} and \
                     {MANIFEST_VERSION}"
                )
            }
            Self::BadChecksum { stated, computed } => {
                write!(f, "its bytes are damaged (checksum {computed:#010x}, {stated:#010x} was written)")
            }
            Self::Malformed => write!(f, "the manifest cannot be decoded"),
            Self::NotAsListed => write!(f, "it is not what the manifest lists here"),
            Self::Missing => write!(f, "there is no such file"),
            Self::Duplicate => write!(f, "the name stands twice"),
            Self::TooManyGuests => write!(f, "there are more than {} guests", limits::GUESTS),
            Self::TooManyControlGuests => {
                write!(f, "there are more than {} guests that may control the host", limits::CONTROL_GUESTS)
            }
            Self::TooManyKeys => write!(f, "there are more than {} keys that the host trusts", limits::TRUSTED_KEYS),
            Self::TooManyNetworks => write!(f, "there are more than {} networks", limits::NETWORKS),
            Self::BadNetwork { network, reason } => write!(f, "network {network:?} {reason}"),
            Self::FileTooLong => write!(f, "the file is 4 GiB long or longer"),
            Self::BadControlKey { key, reason } => write!(f, "control key {key:?} {reason}"),
            Self::BadGuest { guest, reason } => write!(f, "guest {guest:?} {reason}"),
        }
    }
}

impl Problem {
    /// Returns what to do about it.
    fn hint(&self) -> &'static str {
        match self {
            Self::NoArchive | Self::NoManifest => "make one with `baton bundle host.toml -o FILE`",
            Self::Truncated { .. } | Self::BadChecksum { .. } => "copy the bundle again, or make it again",
            Self::UnknownVersion { .. } => "make it with the tool of this host's release",
            Self::TooManyFiles | Self::TooManyGuests | Self::TooManyNetworks => "split it over several hosts",
            Self::FileTooLong => "use a smaller one",
            Self::TooManyControlGuests => "leave `control` out of the others' vsock",
            Self::TooManyKeys => "leave out of [trust] those that are not used any more",
            Self::BadGuest { .. } | Self::BadNetwork { .. } | Self::BadControlKey { .. } => {
                "correct it in host.toml and make the bundle again"
            }
            _ => "make the bundle again with `baton bundle`",
        }
    }
}
