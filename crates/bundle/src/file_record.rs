// SPDX-License-Identifier: MIT OR Apache-2.0
//! The manifest's entry for a file.

use alloc::string::String;

use serde::{Deserialize, Serialize};

/// One entry of the archive besides the manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRecord {
    /// Its name in the archive.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// CRC-32 (ISO HDLC) of its bytes.
    pub crc32: u32,
}
