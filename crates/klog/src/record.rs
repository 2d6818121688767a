// SPDX-License-Identifier: MIT OR Apache-2.0
//! One record, and the line it prints as.

use core::fmt::{self, Write};

use crate::clock::Clock;
use crate::layout::Heading;
use crate::level::Level;
use crate::text::{LARGEST_BYTES, whole_characters};

/// One record, as a reader sees it.
///
/// Prints as a console line without its end: `[    1.234567] cpu0 info  module: text`. Control characters in it are
/// escaped, so a record is one line and no record moves the cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Counts its CPU's records from 0, without gaps, also across those that were overwritten.
    pub sequence: u64,
    /// Time in nanoseconds of the writer's clock.
    pub time_ns: u64,
    /// Number of the CPU that wrote it.
    pub cpu: u32,
    /// Its level.
    pub level: Level,
    /// Part of the system that wrote it.
    pub module: &'a str,
    /// Its message.
    pub text: &'a str,
}

/// A record as it was copied out of a ring: the bytes that a [`Record`] borrows.
#[derive(Clone, Debug)]
pub struct Copied {
    pub(crate) heading: Heading,
    pub(crate) ticks: u64,
    pub(crate) bytes: [u8; LARGEST_BYTES],
}

impl Copied {
    /// Room for a record; until one is copied it is an empty one.
    pub const fn new() -> Self {
        Self { heading: Heading(0), ticks: 0, bytes: [0; LARGEST_BYTES] }
    }

    /// Returns when it was written, in ticks.
    pub fn ticks(&self) -> u64 {
        self.ticks
    }

    /// The record, of this CPU's ring and on its clock.
    pub fn record(&self, cpu: u32, clock: Clock) -> Record<'_> {
        let module_end = self.heading.module_bytes().min(LARGEST_BYTES);
        let text_end = (module_end + self.heading.text_bytes()).min(LARGEST_BYTES);
        Record {
            sequence: self.heading.sequence(),
            time_ns: clock.nanoseconds(self.ticks),
            cpu,
            level: self.heading.level().unwrap_or(Level::Error),
            module: whole_characters(&self.bytes[..module_end]),
            text: whole_characters(&self.bytes[module_end..text_end]),
        }
    }
}

impl Default for Copied {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for Record<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, microseconds) = (self.time_ns / 1_000_000_000, self.time_ns % 1_000_000_000 / 1_000);
        write!(f, "[{seconds:5}.{microseconds:06}] cpu{} {:5} ", self.cpu, self.level)?;
        escape(f, self.module)?;
        f.write_str(": ")?;
        escape(f, self.text)
    }
}

fn escape(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    text.chars().try_for_each(|character| match character {
        '\t' => f.write_char(' '),
        _ if character.is_control() => write!(f, "{}", character.escape_default()),
        _ => f.write_char(character),
    })
}
