// SPDX-License-Identifier: MIT OR Apache-2.0
//! Health of a UART: in use, or dropped because it stood still, until it is checked again.

use crate::hardware::Hardware;

/// Time in ns for which a dropped UART is left alone.
const RETRY_NS: u64 = 1_000_000_000;
/// The same in calls, while there is no clock.
const RETRY_CALLS: u32 = 64;

/// Health of a UART.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    /// No UART answered, or it has not been probed yet.
    Absent,
    Alive,
    /// It stood still: checked again after this moment, or after so many calls where there is no clock.
    Dropped {
        until_ns: Option<u64>,
        calls_left: u32,
    },
}

impl Health {
    /// Returns the health of a UART that stands still from now on.
    pub fn dropped(hardware: &mut impl Hardware) -> Self {
        Self::Dropped { until_ns: hardware.now_ns().map(|now| now + RETRY_NS), calls_left: RETRY_CALLS }
    }

    /// Notes that something has happened on a UART that stood still: the next check need not wait.
    pub fn poll_soon(&mut self) {
        if let Self::Dropped { until_ns, calls_left } = self {
            (*until_ns, *calls_left) = (None, 0);
        }
    }

    /// Returns whether one that stood still is to be checked again; counts the call.
    pub fn may_retry(&mut self, hardware: &mut impl Hardware) -> bool {
        let Self::Dropped { until_ns, calls_left } = self else { return false };
        *calls_left = calls_left.saturating_sub(1);
        match (*until_ns, hardware.now_ns()) {
            (Some(until), Some(now)) => now >= until,
            _ => *calls_left == 0,
        }
    }
}
