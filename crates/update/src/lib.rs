// SPDX-License-Identifier: MIT OR Apache-2.0
//! How the image is replaced while the machine runs: what both images agree on, and what each CPU does when.
//!
//! | module | contents |
//! |---|---|
//! | [`platform`] | what the protocol needs of the machine |
//! | [`order`] | the operator's order, from the request to its answer |
//! | [`prepare`] | when the new image has the CPU to prepare itself, and when that has failed |
//! | [`outbound`] | what a CPU of the old image does in the blackout |
//! | [`blackout`] | what those CPUs share |
//! | [`inbound`] | what a CPU does in the new image until all have restored their guests |
//! | [`nmi`] | which NMIs the update expects |
//! | [`settle`] | what is left to do once guests run in the new image |
//! | [`restart`] | how the leader leaves the old image in a warm restart, in which guests end |
//! | [`takeover`] | the words by which all CPUs switch to the new image, or all stay |
//! | [`trial`] | a CPU's page between two images while the new one runs on trial |
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod blackout;
pub mod inbound;
pub mod nmi;
pub mod order;
pub mod outbound;
pub mod platform;
pub mod prepare;
pub mod restart;
pub mod settle;
mod sync;
pub mod takeover;
pub mod trial;
