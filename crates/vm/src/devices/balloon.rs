// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory balloon (Virtual I/O Device 1.3, section 5.5): a guest gives memory back that it does not use, by pages
//! that it puts into its balloon, and by reports of its free memory.
//!
//! ```text
//! report ──► Frees: hidden ··· every vCPU has flushed its TLB, frames released ──► chain completed: the guest may
//! inflate ─► Partial: whole blocks ──┘                                             use the memory again
//! ```
//!
//! The host releases blocks of 2 MiB. A chain whose memory is being released stays available until that is done: the
//! next image of the hypervisor finds it there, and begins again.

mod config;
mod device;
mod pages;
mod statistics;

pub use device::{Balloon, Frees};
pub use statistics::Statistics;

#[cfg(test)]
mod tests;
