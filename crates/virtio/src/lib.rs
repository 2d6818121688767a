// SPDX-License-Identifier: MIT OR Apache-2.0
//! Virtio 1.3 as a device sees it: split virtqueues in memory that a driver writes at any time.
//!
//! ```text
//! driver ──► descriptors, available ring ──► Queue::take ──► Chain (readable, writable segments)
//! driver ◄── used ring, interrupt ◄── Queue::publish ◄── Queue::complete
//! ```
//!
//! A [`Queue`] is plain data: where its rings are, and how far the device is in them. Memory is passed to each call.
//! Everything in memory is untrusted. Each field is read once, each loop is bounded, and what no driver may write is a
//! [`Fault`], after which the device needs a reset. Nothing allocates.
//!
//! | module | specification (Virtual I/O Device 1.3) |
//! |---|---|
//! | [`feature`], [`status`] | 2.1, 2.2, 6 |
//! | [`Queue`], `rings` | 2.7 |
//! | [`Chain`] | 2.7.4, 2.7.5 |
#![no_std]

#[cfg(test)]
extern crate std;

mod chain;
mod fault;
pub mod feature;
mod limits;
mod memory;
mod queue;
mod rings;
pub mod status;

pub use chain::{Chain, Segment};
pub use fault::Fault;
pub use limits::{CHAIN_SEGMENTS, QUEUE_SIZE_MOST};
pub use memory::{Memory, Outside};
pub use queue::{Options, Progress, Queue};
pub use rings::Addresses;

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
