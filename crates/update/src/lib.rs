// SPDX-License-Identifier: MIT OR Apache-2.0
//! The protocol by which the image is replaced while the machine runs: the formats that both images agree on, and the
//! order of each CPU's steps.
//!
//! ```text
//!           request ─▶ stage ─▶ prepare in slices, rehearse ─▶ blackout ─▶ finish ─▶ answer
//! old image  order       ·      prepare                        outbound              order (rolled back, refused)
//! new image                                                    inbound     finish    finish (committed)
//! ```
//!
//! # State machines
//! Each is a state and a function `next`, `turn` or `poll`, which reads the clock and the words that CPUs share, and
//! returns what the caller does next. What takes long (save, restore, lend the CPU) is such an act; its result is the
//! next input. So a machine never waits: the hypervisor calls it in a loop, and simulated CPUs (`tests/simulated`) call
//! it in any order. Instructions are behind [`platform::Platform`]. Nothing that runs in the blackout allocates or
//! takes a lock.
//!
//! | module | which CPU | contents |
//! |---|---|---|
//! | [`order`] | the leader | the operator's order, from the request to its answer |
//! | [`prepare`] | the leader | when the new image has the CPU to prepare itself, and when that has failed |
//! | [`packed`] | the leader | comparison of guests with the state that was packed for the new image |
//! | [`drafts`] | the leader | guests' state saved once while they run |
//! | [`outbound`] | each, in the old image | leaves its guests, saves them, lends the CPU to the new image, comes back |
//! | [`blackout`] | all of the old image | which CPU has come, which is back |
//! | [`adoption`] | the leader, in the new image | the checks of a guest, and the state that it is built from |
//! | [`slots`] | each, in the new image | the state that it restores: verified, rehearsed, restored |
//! | [`inbound`] | each, in the new image | restores guests, waits for all, takes over or goes back |
//! | [`finish`] | the leader, in the new image | the steps that are left once guests run |
//! | [`confirm`] | the leader, in the new image | when the host returns to the image before because no client confirms |
//! | [`stage`] | the leader | the steps by which the next image is staged, and which of them the policy demands |
//! | [`needs`] | the leader | how much memory that takes, and whether the hand-over block fits |
//! | [`restart`] | the leader | how it leaves in a warm restart, in which guests end and the other CPUs park |
//! | [`parked`] | the leader, in the image after it | the CPUs that it takes from their mailboxes |
//! | [`release`] | the leader, in the image after it | in which order the memory of the image before becomes free |
//! | [`nmi`] | each | which NMIs the update expects; when the watchdog is armed again |
//! | [`takeover`] | all of both images | the words by which all CPUs switch to the new image, or all stay |
//! | [`descriptors`] | the old image | the descriptors in that page: every NMI finds a stack |
//! | [`trial`] | both images | a CPU's page between two images while the new one runs on trial |
//! | [`platform`] | | the hardware interface of the state machines |
//!
//! # Limits
//! No wait is without one, and no CPU can prolong another's:
//!
//! | wait | limit | end |
//! |---|---|---|
//! | for drafts of guests' state | 2 s | the update is refused |
//! | for a slice; for all slices | 250 µs; 10 s | the leader's alarm, the watchdog; the update is refused |
//! | for the control channel to be quiet | 200 ms | the blackout begins |
//! | until all have stopped, saved, restored | `update-limit=` | the CPU that waits rolls back: one word decides |
//! | for a CPU that the new image holds | 500 µs at a time | an NMI from the first CPU that is back, or the watchdog |
//! | for a CPU that no NMI returns | 2,000 NMIs | the host ends: its guests can neither go on nor be left |
//! | until all have entered their guests | 2 s | the old image's memory is taken |
//! | for a client's confirmation, if required | as asked for, a day at most | the host returns to the image before |
//! | until all have parked (restart) | 5 s | INIT; the new image reports the CPU lost |
//!
//! # What stays in the hypervisor
//!
//! The steps of staging themselves (files, signatures, memory), the contents of the hand-over blocks, and how a guest
//! is built from them: they are decided in `seal`, `handover`, `vm` and `frames`. CPUs of a restart are released by
//! `bringup`.
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod adoption;
pub mod blackout;
pub mod confirm;
pub mod descriptors;
pub mod drafts;
pub mod finish;
pub mod inbound;
pub mod needs;
pub mod nmi;
pub mod order;
pub mod outbound;
pub mod packed;
pub mod parked;
pub mod platform;
pub mod prepare;
pub mod release;
pub mod restart;
pub mod slots;
pub mod stage;
mod sync;
pub mod takeover;
pub mod trial;
