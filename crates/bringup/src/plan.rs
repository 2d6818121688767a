// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is decided before the first CPU is kicked.

use crate::startup::{Limits, Reach};
use crate::tsc::SyncPlan;

/// How CPUs are brought up.
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

/// What is decided before the first kick.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// How many at once, and woken how.
    pub policy: Policy,
    /// Whether one interrupt may wake all. Used by [`Policy::Parallel`] only.
    pub reach: Reach,
    /// The page below 1 MiB, divided by 4,096, where CPUs start.
    pub startup_page: u8,
    /// How long what may take.
    pub limits: Limits,
    /// How clocks are determined.
    pub sync: SyncPlan,
    /// When INIT was sent to all others already, where that has been done. Concerns broadcasts only.
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
