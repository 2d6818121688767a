// SPDX-License-Identifier: MIT OR Apache-2.0
//! The disks behind servers in other guests, as the host reports them.

use alloc::string::String;

use serde::{Deserialize, Serialize};

/// A guest's disk with its storage behind an NBD server in another guest. Counts are since the image or the guest
/// started, whichever was later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DiskInfo {
    /// The guest that has it.
    pub guest: String,
    /// Its number among the guest's disks, from 1.
    pub number: u32,
    /// The guest with the server.
    pub server: String,
    /// The export; empty: the server's own choice.
    pub export: String,
    /// Its serial number; empty: none.
    pub serial: String,
    /// True if the guest may only read it.
    pub is_read_only: bool,
    /// True if it is offered with a volatile cache.
    pub is_write_back: bool,
    /// Its size; `None` while the server was never there.
    pub bytes: Option<u64>,
    /// True while the server is connected.
    pub is_connected: bool,
    /// The guest's requests that have no answer yet.
    pub in_flight: u32,
    /// Reads that returned data.
    pub reads: DiskTransfers,
    /// Writes that were acknowledged.
    pub writes: DiskTransfers,
    /// Flushes, discards and requests to write zeroes that were carried out.
    pub others: u64,
    /// Requests that failed.
    pub failures: u64,
    /// Connections to the server that were made.
    pub connections: u64,
}

/// Requests that move data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DiskTransfers {
    /// Their number.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
}
