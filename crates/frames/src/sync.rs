// SPDX-License-Identifier: MIT OR Apache-2.0
//! Atomics: the CPU's own, and in unit tests loom's, which try every interleaving. (Unit tests may therefore
//! touch records only inside `loom::model`; tests of a ledger with records are in `tests/`.)

#[cfg(not(test))]
pub(crate) use core::hint::spin_loop as pause;
#[cfg(not(test))]
pub(crate) use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};
#[cfg(test)]
pub(crate) use loom::sync::atomic::{AtomicU8, AtomicU64, Ordering};
#[cfg(test)]
pub(crate) use loom::thread::yield_now as pause;
