// SPDX-License-Identifier: MIT OR Apache-2.0
//! The log: what every `log::info!` of the hypervisor goes through, the rings that keep it, and its readers.
//!
//! The boot CPU begins with a small ring in the image. Once there is memory, each CPU has one of its own.

mod adding;
mod cursors;
mod drain;
mod follower;
mod logger;
mod predecessor;
mod rings;
mod wire;

pub use adding::{add_ring, collect};
pub use cursors::CpuCursors;
pub use drain::{Drain, LINE_BYTES};
pub use follower::Follower;
pub use logger::{notify_follower, set_followed, start};
pub use rings::{Legacy, legacies, log_memory, ring, set_clock, write};
pub use wire::to_wire;
