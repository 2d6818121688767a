// SPDX-License-Identifier: MIT OR Apache-2.0
//! The end of the host.
//!
//! ```text
//! failure ──► claim ──► note ──► stop the others ──► report ──► epitaph ──► flush ──► last words ──► notify ──► rest,
//! or reboot
//!   │           └── not the first: note itself as stopped, rest                                 ▲
//!   └── in one of these steps: a line, and on with the step after it ───────────────────────────┘
//! ```
//!
//! - [`Ending`]: the first CPU to fail owns the end, by one compare-and-swap; all others stop.
//! - [`stop_others`]: an interrupt for all, an NMI for a CPU that does not answer it, and a line in the report for one
//!   that answers neither.
//! - [`EndProgress`]: a failure within the end costs the step it came in, and can never start the end again.
//! - [`Rest`], [`Watch`]: the idle state of a CPU after the end, and the inputs that the owner still serves.
//! - [`epitaph`]: the record that the next Baton finds in memory.
//! - [`last_words`]: output of guests and events are sent before the machine loses power.
//! - [`stray`]: NMIs and interrupts that no handler claims, which do not end the host.
//!
//! No allocation, no lock, no clock of its own: everything here runs while any lock may be held, from any interrupt.
#![no_std]

#[cfg(test)]
extern crate std;

mod ending;
pub mod epitaph;
pub mod last_words;
mod notice;
mod progress;
mod rest;
mod set;
mod stop;
pub mod stray;
mod sync;
mod watch;

pub use ending::{Ending, Role};
pub use notice::{PVPANIC_PORT, pvpanic_event};
pub use progress::{EndProgress, Step, StepFailure};
pub use rest::{Action, Rest};
pub use set::{CpuSet, MAX_CPUS};
pub use stop::{Limits, StopOutcome, Stopper, stop_others};
pub use watch::{Command, HELP, Watch};

#[cfg(test)]
mod loom_tests;
