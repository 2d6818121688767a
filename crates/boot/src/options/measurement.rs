// SPDX-License-Identifier: MIT OR Apache-2.0
//! `measure`: figures that only the host itself can take, for the benches.

/// Measurements that one command line can ask for.
pub const MAXIMUM_MEASUREMENTS: usize = 3;

/// A measurement of the host by itself, or the load for one. It fails nothing, so that the figures are of the image
/// that operators run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measurement {
    /// The ticks that a log record takes.
    Log,
    /// The ticks that hashing takes.
    Hash,
    /// 400 kB of log from all CPUs while guests run.
    LogStorm,
}

impl Measurement {
    /// Each with its word.
    pub const NAMED: [(&'static str, Self); MAXIMUM_MEASUREMENTS] =
        [("log", Self::Log), ("hash", Self::Hash), ("log-storm", Self::LogStorm)];
}
