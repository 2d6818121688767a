// SPDX-License-Identifier: MIT OR Apache-2.0
//! Timelines: spans and instants with stamps of the time stamp counter, in a bounded ring for each CPU.
//!
//! ```text
//!  cpu 0: task, interrupt, NMI ──▶ Ring ─┐
//!  cpu 1: task, interrupt, NMI ──▶ Ring ─┼──▶ the tool, which draws
//!  cpu 2: …                    ──▶ Ring ─┘
//! ```
//!
//! A record has 16 bytes: a stamp, a [`Name`]'s number, its [`Kind`], and an argument. Writing one takes fifty
//! instructions from call to return (`bench log`), no lock, no memory and no division, in any context; the oldest
//! record makes way. Names are numbers that are never given another meaning: an image writes them, a tool of any
//! release reads them.
//!
//! A ring describes itself ([`mod@layout`]), and the image that comes next goes on in it where it lies
//! ([`Ring::adopt`]): a span may begin in one image and end in the next, and so the blackout between them is on the
//! picture.
//!
//! | module | content |
//! |---|---|
//! | [`mod@layout`] | the layout of a ring's memory |
//! | [`name`] | the names of spans and instants, and the meaning of their number |
//! | [`ring`] | how records get in and out |
#![no_std]

#[cfg(test)]
extern crate std;

pub mod layout;
pub mod name;
pub mod ring;
mod sync;

pub use layout::{Kind, MAXIMUM_ARGUMENT, Point};
pub use name::{Argument, Name};
pub use ring::{AdoptError, Ring, TooSmall, ring_words};

#[cfg(test)]
mod loom_tests;
