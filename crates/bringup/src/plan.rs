// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decisions before the first CPU is kicked.

use crate::startup::{Limits, Reach};
use crate::tsc::SyncPlan;

/// Way in which CPUs are brought up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// One after the other, each waited for four times: the baseline.
    Serial,
    /// All are kicked, then waited for.
    Parallel,
    /// All wait at mailboxes where the previous image parked them: no CPU is reset.
    Park,
}

impl Policy {
    /// Returns how many of `count` are kicked before the first is waited for.
    pub const fn batch(self, count: u32) -> u32 {
        match self {
            Self::Serial => 1,
            Self::Parallel | Self::Park => count,
        }
    }
}

/// Decisions before the first kick.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Number of CPUs at once, and way to wake them.
    pub policy: Policy,
    /// CPUs that one interrupt wakes. Used by [`Policy::Parallel`] only.
    pub reach: Reach,
    /// The page below 1 MiB, divided by 4,096, where CPUs start.
    pub startup_page: u8,
    /// Limits of the waits.
    pub limits: Limits,
    /// Way in which clocks are determined.
    pub sync: SyncPlan,
    /// Time of an INIT to all others, where one was sent already. Concerns broadcasts only.
    pub reset_at: Option<u64>,
}

impl Plan {
    /// Returns whether all are woken by one interrupt.
    pub(crate) fn is_broadcast(&self) -> bool {
        self.policy == Policy::Parallel && self.reach == Reach::Everyone
    }

    /// Returns whether CPUs wake each other.
    pub(crate) fn is_relayed(&self) -> bool {
        self.policy == Policy::Park
    }
}
