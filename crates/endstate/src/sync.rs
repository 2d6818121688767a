// SPDX-License-Identifier: MIT OR Apache-2.0
//! Atomics: the CPU's own, and in unit tests loom's, which try every interleaving. (Unit tests may therefore
//! touch atomics only inside `loom::model`; whole ends are played in `tests/`.)

#[cfg(not(test))]
pub(crate) use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
#[cfg(test)]
pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Defines a constructor that is `const` wherever the atomics' are: everywhere but under loom.
macro_rules! const_new {
    ($(#[$attribute:meta])* $body:block) => {
        $(#[$attribute])*
        #[cfg(not(test))]
        pub const fn new() -> Self $body
        $(#[$attribute])*
        #[cfg(test)]
        pub fn new() -> Self $body
    };
}
pub(crate) use const_new;
