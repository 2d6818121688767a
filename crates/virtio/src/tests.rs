// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of the specification by its sections, hostile drivers, and a driver that keeps the rules.

mod hostile;
mod properties;
mod sections;

use crate::model::{Driver, MEMORY_BYTES, Ram};
use crate::{Options, Queue, Segment};

const PLAIN: Options = Options { has_indirect: false, has_event_index: false };
const ALL: Options = Options { has_indirect: true, has_event_index: true };

fn lab(size: u16, options: Options) -> (Ram, Driver, Queue) {
    let driver = Driver::new(size, options);
    let queue = driver.queue();
    (Ram::new(MEMORY_BYTES), driver, queue)
}

fn segment(address: u64, bytes: u32) -> Segment {
    Segment { address, bytes }
}
