// SPDX-License-Identifier: MIT OR Apache-2.0
//! The manifest's entries for disks.

use alloc::string::String;

use serde::{Deserialize, Serialize};

/// A disk of a guest: an export of an NBD server in another guest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskConfig {
    /// The context identifier of the server's guest.
    pub cid: u32,
    /// The server's port.
    pub port: u32,
    /// The export's name; empty for the server's own choice.
    pub export: String,
    /// True if the guest may only read it.
    pub is_read_only: bool,
    /// True if writes are acknowledged before they are stable, as long as the guest does not flush.
    pub is_write_back: bool,
    /// The time in seconds without an answer after which a request fails.
    pub timeout_s: u32,
    /// Its serial number.
    pub serial: String,
    /// The limits of the guest's requests in a second.
    pub limits: DiskLimits,
}

/// The limits of a guest's requests to a disk in a second; `None`: no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskLimits {
    /// Requests.
    pub requests_per_s: Option<u32>,
    /// Bytes that are read or written.
    pub bytes_per_s: Option<u64>,
}
