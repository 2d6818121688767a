// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every CPU at once.
//!
//! Waking a CPU and waiting for it are two things. KICK is asynchronous and never waits for an answer; WAIT comes after
//! all have been kicked, so that a host with 4,096 CPUs waits about as long as one with two. A CPU goes its own way
//! through the states ([`State`]) and records the time of each; the boot CPU monitors this, answers questions about the
//! time, and gives up those that make no progress.
//!
//! ```text
//!                KICK                WAIT
//! Offline ──▶ Kicked ──▶ Alive ──▶ Initialised ──▶ TscSynchronised ──▶ Online
//!    Parked ────▲  └────────┴──────────┴──────────────────┴──▶ Dead(phase)
//! ```
//!
//! One code path serves the three policies, which differ in two choices ([`Policy`]): how many are kicked before the
//! first is waited for (serial: one), and what a kick is (an interrupt, or a write to the mailbox of a CPU that
//! the previous image parked).
//!
//! Nothing here grows with the number of CPUs except what they do at the same time:
//!
//! | step | how it stays short |
//! |---|---|
//! | kick | one broadcast where it is sound ([`startup::Reach`]); parked CPUs release each other, eight each ([`Tree`]) |
//! | permission | one word for all ([`Shared`]); a word for each in the serial policy only |
//! | TSC | skipped where proven needless ([`tsc::decide`]), else measured in pairs along the tree, all at the same time |
//! | arrival | counted in groups of 64, so that neither the counter nor its reader is a queue ([`Group`]) |
//! | waits per CPU | worked out afterwards, from the stamps that the CPUs left ([`Waits`]) |
//!
//! Two CPUs never write the same word without compare-and-exchange: a CPU that makes a step and the CPU that gives it
//! up race for its state word, and one of them wins. So none is ever both online and dead. The unit tests try every
//! interleaving of these races (loom).
//!
//! | module | content |
//! |---|---|
//! | [`state`] | states, phases, legal transitions |
//! | [`startup`] | delays after INIT, limits of every wait, with their reasons |
//! | [`crew`] | the state that the CPUs share |
//! | [`conductor`] | the boot CPU's part |
//! | [`follower`] | the part of every other CPU |
//! | [`tsc`] | whether measuring is needed; the exchange; the estimate |
//! | [`park`] | the mailbox that survives a restart |
//! | [`watchdog`] | a timer that gets a CPU back which a new image holds with interrupts masked |
//! | [`waits`] | the boot CPU's waits, by CPU and phase |
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod cell;
pub mod conductor;
pub mod crew;
pub mod follower;
pub mod hardware;
pub mod park;
mod plan;
mod relatives;
pub mod startup;
pub mod state;
mod sync;
mod tree;
pub mod tsc;
pub mod waits;
pub mod watchdog;

pub use cell::{ClockSync, CpuCell, Stamps, SyncOutcome};
pub use conductor::{BringUp, Summary, bring_up, bring_up_some};
pub use crew::{Crew, CrewError, GROUP_CPUS, Group, Shared};
pub use follower::{Follower, Next, Refused};
pub use hardware::{Clock, Kick, Station, Wake};
pub use park::{Entry, ParkSlot, SlotError};
pub use plan::{Plan, Policy};
pub use state::{Phase, State};
pub use tree::{FAN_OUT, Tree};
pub use waits::{Waits, in_order, last_first_sign};

#[cfg(test)]
mod loom_tests;
