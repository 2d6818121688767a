// SPDX-License-Identifier: MIT OR Apache-2.0
//! The log: records, levels, a ring for each CPU, and readers that never stop a writer.
//!
//! ```text
//!  cpu 0: task, interrupt, NMI ──▶ Ring ─┐
//!  cpu 1: task, interrupt, NMI ──▶ Ring ─┼──▶ Merge ──▶ console
//!  cpu 2: …                    ──▶ Ring ─┘     └─────▶ control channel, emergency, …
//! ```
//!
//! A ring has one writing CPU and no lock. That CPU may write in any context: an NMI in the middle of a record, a
//! record about the log itself. Any code may read, in any context; each reader has its own [`Cursor`] (or a [`Merge`]
//! of all rings), copies records out, and learns exactly how many it has missed: each CPU numbers its records without
//! gaps.
//!
//! Everything in a ring is a word that is read and written atomically, so that a copy of a record that is overwritten
//! meanwhile is garbage that is discarded, and nothing worse. The unit tests try every interleaving of a writer and a
//! reader, and an interrupt before each operation of a writer (loom).
//!
//! A ring describes itself ([`mod@layout`]): the image that comes next may read it as [`Foreign`] bytes.
//!
//! A record prints as one line, whatever its content (see [`Record`]): guests' names and loaders' strings reach the
//! log, and must not be able to forge lines or command the operator's terminal.
//!
//! | module | content |
//! |---|---|
//! | [`mod@layout`] | the layout of a ring's memory |
//! | [`ring`] | how records get in |
//! | [`reader`], [`merge`] | how they get out: from one ring, from all |
//! | [`foreign`] | rings that another image has left |
//! | [`record`] | a record, and its line |
#![no_std]

#[cfg(test)]
extern crate std;

mod clock;
pub mod foreign;
pub mod layout;
mod level;
pub mod merge;
pub mod reader;
pub mod record;
pub mod ring;
mod sync;
mod text;

pub use clock::Clock;
pub use foreign::{Foreign, ForeignError};
pub use layout::{HEADER_WORDS, MAXIMUM_RING_WORDS, MINIMUM_RING_WORDS};
pub use level::{Level, UnknownLevel};
pub use merge::{Cursors, Merge, Merged};
pub use reader::{Cursor, Memory, Reach, Step};
pub use record::{Copied, Record};
pub use ring::{Ring, TooSmall};
pub use text::{MAXIMUM_MODULE_BYTES, MAXIMUM_TEXT_BYTES};

#[cfg(test)]
mod loom_tests;
