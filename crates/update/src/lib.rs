// SPDX-License-Identifier: MIT OR Apache-2.0
//! How the image is replaced while the machine runs: what both images agree on, and what each CPU does when.
//!
//! | module | contents |
//! |---|---|
//! | [`platform`] | what the protocol needs of the machine |
//! | [`outbound`] | what a CPU of the old image does in the blackout |
//! | [`blackout`] | what those CPUs share |
//! | [`inbound`] | what a CPU does in the new image until all have restored their guests |
//! | [`takeover`] | the words by which all CPUs switch to the new image, or all stay |
//! | [`trial`] | a CPU's page between two images while the new one runs on trial |
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod blackout;
pub mod inbound;
pub mod outbound;
pub mod platform;
mod sync;
pub mod takeover;
pub mod trial;
