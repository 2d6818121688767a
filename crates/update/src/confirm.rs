// SPDX-License-Identifier: MIT OR Apache-2.0
//! An update that a client has to confirm: where none does in time, the new image returns to the one before by itself.
//!
//! ```text
//! NotWanted
//! Awaiting ─ confirmed ▶ Confirmed
//!    └ deadline ▶ Returning ─ all CPUs commit ▶ (the image before runs)
//!                     ├ refused, for now ▶ Returning, tried again after a while, a limited number of times
//!                     └ refused ▶ Stayed
//! ```
//!
//! The deadline counts from the new image's first turn, when guests run. An order to replace the image would lose the
//! way back, so there is none but the one to go back while a deadline waits.

use crate::platform::Clock;

/// Attempts to return in all.
const ATTEMPTS: u32 = 10;
/// Interval in µs between a refused attempt and the next one, and at which it is polled where something else is under
/// way.
const AGAIN_US: u64 = 1_000_000;
const SECOND_US: u64 = 1_000_000;

/// The state of the confirmation in the image that runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Confirmation {
    /// No confirmation is required.
    #[default]
    NotWanted,
    /// A client is to confirm until this time, in ticks.
    Awaiting {
        /// The time.
        until: u64,
    },
    /// None has. The host returns to the image before.
    Returning {
        /// The attempts that are left, the one under way included.
        attempts: u32,
        /// Time of the next one, in ticks; `None`: one is under way.
        next: Option<u64>,
    },
    /// A client has confirmed.
    Confirmed,
    /// The return was refused: the host stays with this image.
    Stayed,
}

/// Why a confirmation is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TooLate {
    /// No confirmation is required.
    NotWanted,
    /// The host returns already.
    Returning,
    /// The host could not return, and stays with this image.
    Stayed,
}

impl Confirmation {
    /// Returns the state at the start of an image that is to be confirmed within this many seconds.
    #[must_use]
    pub fn begin(seconds: Option<u32>, clock: &impl Clock) -> Self {
        seconds.map_or(Self::NotWanted, |seconds| {
            let ticks = clock.ticks(u64::from(seconds) * SECOND_US);
            Self::Awaiting { until: clock.now().saturating_add(ticks) }
        })
    }

    /// Confirms for a client. Returns whether it was not confirmed before.
    ///
    /// # Errors
    /// [`TooLate`]: the host does not wait for one.
    pub fn confirm(&mut self) -> Result<bool, TooLate> {
        match self {
            Self::Awaiting { .. } => {
                *self = Self::Confirmed;
                Ok(true)
            }
            Self::Confirmed => Ok(false),
            Self::NotWanted => Err(TooLate::NotWanted),
            Self::Returning { .. } => Err(TooLate::Returning),
            Self::Stayed => Err(TooLate::Stayed),
        }
    }

    /// Returns whether the way back must be kept: no other image may replace this one.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Awaiting { .. } | Self::Returning { .. })
    }

    /// Returns when to call [`Self::turn`] next.
    #[must_use]
    pub fn alarm(&self) -> Option<u64> {
        match self {
            Self::Awaiting { until } => Some(*until),
            Self::Returning { next, .. } => *next,
            Self::NotWanted | Self::Confirmed | Self::Stayed => None,
        }
    }

    /// Returns whether the host is to return now. `is_busy`: an order of an operator is under way, perhaps one to
    /// return; it is waited for.
    pub fn turn(&mut self, clock: &impl Clock, is_busy: bool) -> bool {
        let now = clock.now();
        if self.alarm().is_none_or(|at| now < at) {
            return false;
        }
        let attempts = if let Self::Returning { attempts, .. } = self { *attempts } else { ATTEMPTS };
        let next = is_busy.then(|| now.saturating_add(clock.ticks(AGAIN_US)));
        *self = Self::Returning { attempts, next };
        !is_busy
    }

    /// Notes that the attempt of [`Self::turn`] was refused; `is_final`: another one would be, too. Returns whether the
    /// host stays for good.
    pub fn fail(&mut self, clock: &impl Clock, is_final: bool) -> bool {
        let Self::Returning { attempts, next: None } = *self else { return false };
        let attempts = attempts.saturating_sub(1);
        *self = if is_final || attempts == 0 {
            Self::Stayed
        } else {
            Self::Returning { attempts, next: Some(clock.now().saturating_add(clock.ticks(AGAIN_US))) }
        };
        *self == Self::Stayed
    }
}
