// SPDX-License-Identifier: MIT OR Apache-2.0
//! The log: what every `log::info!` of the hypervisor goes through, the rings that keep it, and its readers.
//!
//! The boot CPU begins with a small ring in the image. Once there is memory, each CPU has one of its own.

mod adding;
mod cursors;
mod drain;
mod follower;
mod heritage;
mod logger;
mod rings;
mod wire;

pub use adding::{add_ring, collect};
pub use cursors::CpuCursors;
pub use drain::{Drain, LINE_BYTES};
pub use follower::Follower;
pub use logger::{set_followed, start, tell_follower};
pub use rings::{Legacy, legacies, ring, set_clock, tell_memory, write};
pub use wire::to_wire;
