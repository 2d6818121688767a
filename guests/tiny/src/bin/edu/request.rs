// SPDX-License-Identifier: MIT OR Apache-2.0
//! The task that the command line asks for.

use tiny::{options, timing};

use crate::device::Edu;

/// The device, and the options of all ways.
pub struct Request<'text> {
    /// The device.
    pub edu: Edu,
    /// Interrupts of a series: `n=`.
    pub count: usize,
    /// CPUs that there are: `cpus=`.
    pub cpus: usize,
    /// Rounds of what goes on for ever otherwise, or has a number of its own: `rounds=`.
    pub rounds: Option<u64>,
    /// Seed of what is without order: `seed=`.
    pub seed: u64,
    /// All of it.
    pub command_line: &'text str,
}

impl<'text> Request<'text> {
    /// Reads the options.
    pub fn of(command_line: &'text str, edu: Edu, cpus: usize) -> Self {
        let number = |name| options::number(command_line, name);
        let count = number("n").unwrap_or(1000).clamp(1, timing::ROOM);
        let rounds = number("rounds").map(|rounds| rounds as u64);
        Self { edu, count, cpus, rounds, seed: number("seed").unwrap_or(0) as u64, command_line }
    }
}
