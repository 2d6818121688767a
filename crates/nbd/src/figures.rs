// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts of a client's work.

use crate::request::{Command, Failure, Request};

/// A client's state, and what it has done since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// The export's length as it was last negotiated; `None` before.
    pub export_bytes: Option<u64>,
    /// True while requests are sent.
    pub is_up: bool,
    /// The driver's requests in flight.
    pub in_flight: u32,
    /// Counts of answered requests.
    pub counts: Counts,
}

/// Counts of requests that were answered to the driver, and of connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Reads that returned data.
    pub reads: Transfers,
    /// Writes that were acknowledged.
    pub writes: Transfers,
    /// Other requests that were carried out: flushes, discards, zeroes.
    pub others: u64,
    /// Requests that failed.
    pub failures: u64,
    /// Connections on which an export was negotiated.
    pub connections: u64,
}

/// Requests that move data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transfers {
    /// Their number.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Counts {
    /// Counts a request that is answered.
    pub(crate) fn add(&mut self, request: &Request, result: Result<(), Failure>) {
        let transfers = match (result, request.command) {
            (Err(_), _) => return self.failures += 1,
            (Ok(()), Command::Read) => &mut self.reads,
            (Ok(()), Command::Write) => &mut self.writes,
            (Ok(()), _) => return self.others += 1,
        };
        transfers.requests += 1;
        transfers.bytes += u64::from(request.bytes);
    }
}
