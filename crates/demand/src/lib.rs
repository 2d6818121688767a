// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory on demand: each block of 2 MiB of a guest's memory has a frame of its own, or none.
//!
//! ```text
//! none ──► there: touched by the guest, or written by a device ──► hidden: the guest has freed it
//!   ▲                                                                 │ every vCPU has flushed its TLB
//!   └─────────────────────────────────────────────────────────────────┘ the frame is the host's
//! ```
//!
//! | module | content |
//! |---|---|
//! | [`Blocks`] | the blocks of a guest: where each is, and how they come and go |
//! | [`Source`] | the host, which gives frames and takes them back |
//! | [`Layout`] | the addresses at which the guest sees its blocks |
//! | [`Partial`] | pages of 4 KiB that a guest frees one by one, until they are whole blocks |
//!
//! While an update is under way nothing changes, but that spare frames, which are handed over with the rest, become
//! blocks.

#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod block;
mod blocks;
mod changes;
mod layout;
mod partial;
mod pending;
mod source;

pub use block::BLOCK_BYTES;
pub use blocks::{Blocks, Outside};
pub use changes::{Hiding, Packed, Shown};
pub use layout::Layout;
pub use partial::Partial;
pub use pending::SPARES;
pub use source::{Claim, Source};

#[cfg(test)]
mod tests;
