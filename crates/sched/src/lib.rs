// SPDX-License-Identifier: MIT OR Apache-2.0
//! The choice of the vCPU that a CPU runs next, of its time, and of the CPU that a vCPU is on.
//!
//! Every CPU has a [`RunQueue`] of its own, which no other CPU touches: there is no global queue and no lock. The queue
//! only decides; switching, alarms and messages between CPUs are the caller's.
//!
//! ```text
//!              wake                     pick
//!   Blocked ─────────► Runnable ──────────────────► Running
//!      ▲                  │  ▲   slice over, yield,    │
//!      │      block       │  └── a sleeper is ahead ───┤
//!      └──────────────────┴────────────────────────────┘ block
//! ```
//!
//! **Fair by weight.** An entity's virtual time is the time it has run divided by its weight; the entity with the least
//! runs next. So over any longer time each gets the CPU in proportion to its weight, whatever the others do.
//!
//! **Sleep is not saved up.** While an entity sleeps the others' virtual time goes on. It wakes at most
//! [`SLEEPER_CREDIT_MS`] of its own running behind them: enough to run at once, too little to keep the others waiting.
//!
//! **No cost without a choice.** An entity that is the only runnable one, as a pinned one always is, has no end of
//! slice: the caller sets no alarm.
//!
//! | module | content |
//! |---|---|
//! | [`RunQueue`] | the entities of a CPU, and their states |
//! | `entity` | one entity: its weight, its virtual time, where its time went |
//! | [`cap`] | an upper limit for all vCPUs of a guest |
//! | [`throttle`] | a sliver of time for an entity that makes no progress by running |
//! | `pace` | the constants, in ticks of the caller's clock |
//! | [`placement`] | which CPU an entity goes to |
//! | [`LeaveOrder`] | how a CPU is asked to leave |
//! | [`CpuLocation`] | the CPU of a receiver that may migrate while messages are sent to it |
#![no_std]

#[cfg(test)]
extern crate std;

pub mod cap;
mod cpu_location;
mod entity;
mod leave;
mod pace;
pub mod placement;
mod queue;
mod sync;
pub mod throttle;
mod weight;

pub use cap::{Cap, Limit};
pub use cpu_location::CpuLocation;
pub use entity::{State, Times};
pub use leave::{LeaveOrder, Leaving, Patience, Verdict};
pub use pace::{LEAST_SLICE_MS, PERIOD_MS, SLEEPER_CREDIT_MS, Ticks, WAKE_MARGIN_MS};
pub use queue::{Choice, InsertError, MOST_SLOTS, RunQueue, Wakeup};
pub use throttle::{Sliver, Throttle};
pub use weight::{Weight, WeightError};

#[cfg(test)]
mod tests;
