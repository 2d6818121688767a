// SPDX-License-Identifier: MIT OR Apache-2.0
//! A client's configuration, and the connection events that it reports.

use alloc::string::String;

use crate::export::Export;
use crate::problem::Problem;

/// The configuration of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The export's name, [`NAME_BYTES`](crate::NAME_BYTES) at most.
    pub export: String,
    /// The client sends no request that changes the export.
    pub is_read_only: bool,
    /// Writes are acknowledged before they are stable.
    pub is_write_back: bool,
    /// The time without an answer after which a request fails.
    pub timeout_ns: u64,
}

/// An event of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// The export is negotiated.
    Up(Export),
    /// The connection failed, for this reason. Repeated attempts report it once.
    Down(Problem),
}
