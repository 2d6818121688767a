// SPDX-License-Identifier: MIT OR Apache-2.0
//! Atomics: the CPU's own, and in unit tests loom's, which try every interleaving. (Unit tests may therefore
//! touch rings and places only inside `loom::model`; tests that run real ones are in `tests/`.)

#[cfg(not(test))]
pub(crate) use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};

#[cfg(test)]
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
