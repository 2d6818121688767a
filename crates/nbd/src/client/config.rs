// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a client is told, and what it tells.

use alloc::string::String;

use crate::export::Export;
use crate::problem::Problem;

/// What a client is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The export's name, [`NAME_BYTES`](crate::NAME_BYTES) at most.
    pub export: String,
    /// It changes nothing.
    pub is_read_only: bool,
    /// Writes are acknowledged before they are stable.
    pub is_write_back: bool,
    /// A request fails after so long without an answer.
    pub timeout_ns: u64,
}

/// What has happened to the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// The export is there.
    Up(Export),
    /// It is not, for this reason. It is reported once, however often the client tries again.
    Down(Problem),
}
