// SPDX-License-Identifier: MIT OR Apache-2.0
//! A profile of a hypervisor, taken from within: the code that its CPUs execute, sampled a fixed number of times a
//! second.
//!
//! ```text
//! sampling clock ─▶ interrupt that cannot be masked ───▶ walk ─▶ Sample ─▶ Ring ─▶ pages ─▶ the requester
//!                   (each CPU, its own)                  full: lost, counted
//! ```
//!
//! | module | content |
//! |---|---|
//! | [`walk`] | return addresses up a stack that may be in any state |
//! | [`sample`] | the format of a sample, in words |
//! | [`ring`] | samples from the interrupt's handler to their reader, without a lock |
//! | [`place`] | whether a handler may still be using memory that is to be given back |
//! | [`session`] | the client that takes the profile, how often at most, and when it ends by itself |
//!
//! Nothing here allocates or waits. A clock, an interrupt and memory are the user's.
#![no_std]

#[cfg(test)]
extern crate std;

pub mod place;
pub mod ring;
pub mod sample;
pub mod session;
mod sync;
pub mod walk;

pub use place::Place;
pub use ring::Ring;
pub use sample::{MOST_FRAMES, MOST_WORDS, Sample, Samples};
pub use session::Session;

#[cfg(test)]
mod tests;
