// SPDX-License-Identifier: MIT OR Apache-2.0
//! The mailbox's atomics: the CPU's own. A test compiles the mailbox a second time, with loom's
//! (`tests/interleavings.rs`).

pub(super) use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
