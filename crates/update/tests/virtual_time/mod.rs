// SPDX-License-Identifier: MIT OR Apache-2.0
//! A clock that tests set.

use std::cell::Cell;

use update::platform::Clock;

/// A tick is a microsecond.
#[derive(Default)]
pub struct Time(pub Cell<u64>);

impl Clock for Time {
    fn now(&self) -> u64 {
        self.0.get()
    }

    fn ticks(&self, us: u64) -> u64 {
        us
    }
}

pub fn at(us: u64) -> Time {
    Time(Cell::new(us))
}
