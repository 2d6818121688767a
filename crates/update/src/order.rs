// SPDX-License-Identifier: MIT OR Apache-2.0
//! The operator's order to update: one at a time, answered once, by the image that runs when it is over.
//!
//! ```text
//! Idle ─begin▶ Preparing ─▶ Ready ─depart▶ Returning ─ all CPUs are back ─▶ Idle, answered: rolled back
//!                  │          └ guests have changed ─▶ Idle, answered
//!                  └ failed, or a dry run ─▶ Idle, answered
//! ```
//!
//! In `Returning` either image may answer. The old one does once all CPUs are back in it; where they commit, it does
//! not run any more, and the new one answers the [request](Order::request) that was handed over to it.

use core::mem;

use crate::platform::Clock;

/// Longest time in µs for which a prepared update waits until the control channel has sent everything.
const QUIET_LIMIT_US: u64 = 200_000;
/// Interval in µs at which it is polled where nothing else sets one.
const POLL_US: u64 = 1_000;

/// An order by the request `R`, with the preparation `P`.
#[derive(Debug, Default)]
pub enum Order<R, P> {
    /// None.
    #[default]
    Idle,
    /// The new image prepares itself.
    Preparing {
        /// The request that is answered when it is over.
        request: R,
        /// Nothing is to be replaced.
        is_dry_run: bool,
        /// The preparation's state.
        preparation: P,
    },
    /// It has, and the blackout begins at this time at the latest.
    Ready {
        /// The request.
        request: R,
        /// All that is prepared.
        preparation: P,
        /// The time.
        until: u64,
    },
    /// CPUs are on their way to the new image, or back.
    Returning {
        /// The request.
        request: R,
    },
}

/// The preparation's progress.
#[derive(Debug)]
pub enum Progress<P, F> {
    /// It goes on.
    UnderWay(P),
    /// It is complete.
    Prepared(P),
    /// It has failed for this reason.
    Failed(F),
}

/// The outcome of an order in the old image.
#[derive(Debug, PartialEq, Eq)]
pub enum End<P, F> {
    /// A dry run was prepared.
    DryRun(P),
    /// The preparation failed.
    Failed(F),
    /// All CPUs have come back.
    RolledBack,
}

impl<R: Copy, P> Order<R, P> {
    /// Begins one. The caller has made sure that there is [none](Self::is_idle).
    pub fn begin(&mut self, request: R, is_dry_run: bool, preparation: P) {
        *self = Self::Preparing { request, is_dry_run, preparation };
    }

    /// Returns whether there is no order.
    pub fn is_idle(&self) -> bool {
        matches!(self, Self::Idle)
    }

    /// Returns when to [poll](Self::poll) next; `alarm` of a preparation.
    pub fn alarm(&self, clock: &impl Clock, alarm: impl FnOnce(&P) -> u64) -> Option<u64> {
        let soon = || clock.now() + clock.ticks(POLL_US);
        match self {
            Self::Idle => None,
            Self::Preparing { preparation, .. } => Some(alarm(preparation)),
            // It is waited for longer where the caller has something left to do.
            Self::Ready { until, .. } if *until > clock.now() => Some((*until).min(soon())),
            Self::Ready { .. } => Some(soon()),
            Self::Returning { .. } => Some(soon()),
        }
    }

    /// Returns the request that the new image is to answer if all CPUs commit.
    pub fn request(&self) -> Option<R> {
        match self {
            Self::Ready { request, .. } | Self::Returning { request } => Some(*request),
            Self::Idle | Self::Preparing { .. } => None,
        }
    }

    /// Returns whether the blackout may begin; `is_quiet`: nothing waits to be sent.
    pub fn may_depart(&self, clock: &impl Clock, is_quiet: bool) -> bool {
        matches!(self, Self::Ready { until, .. } if is_quiet || *until <= clock.now())
    }

    /// Returns what is prepared, for the blackout that begins now; or the request that is to be refused, and why:
    /// guests are not what they were, which `outdated` reports. `None` if nothing is ready.
    pub fn depart<F>(&mut self, outdated: impl FnOnce(&P) -> Option<F>) -> Option<Result<P, (R, F)>> {
        match mem::take(self) {
            Self::Ready { request, preparation, .. } => Some(match outdated(&preparation) {
                Some(reason) => Err((request, reason)),
                None => {
                    *self = Self::Returning { request };
                    Ok(preparation)
                }
            }),
            other => {
                *self = other;
                None
            }
        }
    }

    /// Goes on with it: `prepare` takes the preparation a step further. Returns the request that is to be answered, and
    /// how it ended, once it is over.
    pub fn poll<F>(
        &mut self,
        clock: &impl Clock,
        prepare: impl FnOnce(P) -> Progress<P, F>,
        are_all_back: impl FnOnce() -> bool,
    ) -> Option<(R, End<P, F>)> {
        match mem::take(self) {
            Self::Preparing { request, is_dry_run, preparation } => match prepare(preparation) {
                Progress::UnderWay(preparation) => {
                    *self = Self::Preparing { request, is_dry_run, preparation };
                    None
                }
                Progress::Prepared(preparation) if !is_dry_run => {
                    let until = clock.now() + clock.ticks(QUIET_LIMIT_US);
                    *self = Self::Ready { request, preparation, until };
                    None
                }
                Progress::Prepared(preparation) => Some((request, End::DryRun(preparation))),
                Progress::Failed(reason) => Some((request, End::Failed(reason))),
            },
            Self::Returning { request } if are_all_back() => Some((request, End::RolledBack)),
            other => {
                *self = other;
                None
            }
        }
    }
}
