// SPDX-License-Identifier: MIT OR Apache-2.0
//! The calls from this layer to the code above it: the only ones.
//!
//! A CPU comes up in this layer, and runs the loop that a higher one has. The table is a constant of the image, which
//! its main function passes down before it does anything else. [`crate::arch::hooks`] is bound by the linker, since an
//! exception may come before that; a CPU cannot.

use ::update::trial::TrialPage;
use spin::Once;

use crate::arch::virt::{Unavailable, Virt};

/// Functions of the code above `kernel`.
pub struct Hooks {
    /// Runs the calling CPU's loop, until the CPU has been ordered to leave the host and holds nothing any more.
    /// Interrupts are masked.
    pub run: fn(Result<Virt, Unavailable>),
    /// Does the same for a CPU that comes from the image before with its vCPUs: the CPU of this number, with its page
    /// between the images.
    pub take_over: fn(Result<Virt, Unavailable>, u32, &'static TrialPage),
}

static HOOKS: Once<&'static Hooks> = Once::new();

/// Passes the image's table down.
pub fn provide(hooks: &'static Hooks) {
    HOOKS.call_once(|| hooks);
}

/// The image's table; `None` before its main function has begun.
pub fn get() -> Option<&'static Hooks> {
    HOOKS.get().copied()
}
