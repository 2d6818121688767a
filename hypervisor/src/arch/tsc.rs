// SPDX-License-Identifier: MIT OR Apache-2.0
//! The TSC as the clock of an update's protocol: it is the same on all CPUs.

use ::update::platform::Clock;

use super::{cpu, timer};

/// The TSC.
pub struct Tsc;

impl Clock for Tsc {
    #[inline]
    fn now(&self) -> u64 {
        cpu::tsc()
    }

    fn ticks(&self, us: u64) -> u64 {
        timer::us_to_ticks(us)
    }
}
