// SPDX-License-Identifier: MIT OR Apache-2.0
//! The end of the host.
//!
//! ```text
//! failure ──► claim ──► note ──► stop the others ──► report ──► epitaph ──► flush ──► last words ──► notify ──► rest,
//! or reboot
//!   │           └── not the first: answer the roll call, rest                                   ▲
//!   └── in one of these steps: a line, and on with the step after it ───────────────────────────┘
//! ```
//!
//! - [`Ending`]: the first CPU to fail owns the end, by one compare-and-swap; all others go quiet.
//! - [`stop_others`]: an interrupt for everyone, an NMI for a CPU that does not answer it, and a name for one that
//!   answers neither.
//! - [`Descent`]: a failure within the end costs the step it came in, and can never start the end again.
//! - [`Rest`], [`Watch`]: what a CPU does for ever, and what the owner still listens to.
//! - [`epitaph`]: what the next Baton finds in memory.
//! - [`last_words`]: what guests have written and what has happened leaves the machine before its power does.
//! - [`stray`]: NMIs and interrupts that nobody claims, which end nothing.
//!
//! No allocation, no lock, no clock of its own: everything here runs while any lock may be held, from any interrupt.
#![no_std]

#[cfg(test)]
extern crate std;

mod descent;
mod ending;
pub mod epitaph;
pub mod last_words;
mod notice;
mod rest;
mod set;
mod stop;
pub mod stray;
mod sync;
mod watch;

pub use descent::{Descent, Fall, Step};
pub use ending::{Ending, Role};
pub use notice::{PVPANIC_PORT, pvpanic_event};
pub use rest::{Action, Rest};
pub use set::{CpuSet, MAX_CPUS};
pub use stop::{Limits, RollCall, Stopper, stop_others};
pub use watch::{Command, HELP, Watch};

#[cfg(test)]
mod loom_tests;
