// SPDX-License-Identifier: MIT OR Apache-2.0
//! Polls of a UART that should have interrupted.
//!
//! An interrupt can be lost (a chipset's edge, an emulator's race), and an edge-triggered line that is already high
//! causes no second one: bytes that come then would not be read. So the channel is served at this interval in any case.
//! Linux does the same for UARTs known to lose interrupts.

use crate::arch::{cpu, serial, timer};

/// The time that bytes may wait although no interrupt has announced them.
const INTERVAL_US: u64 = 200_000;
/// The same while a file is being sent: its sender waits for answers.
const UPLOAD_INTERVAL_US: u64 = 10_000;

/// The time of the next poll of the UART, and the number of polls that were needed.
#[derive(Default)]
pub struct Polling {
    next: u64,
    found: u32,
}

impl Polling {
    /// Returns when to poll, in TSC ticks.
    pub fn alarm(&self) -> u64 {
        self.next
    }

    /// The channel was served, and `received` bytes were there. Logs those that only the poll has found: the first time
    /// and whenever their number has doubled. During an upload polls are so frequent that they often come before the
    /// UART's time-out, which announces less than its trigger level: that is no loss.
    pub fn note_served(&mut self, received: usize, is_upload: bool) {
        let now = cpu::tsc();
        let (has_interrupted, is_due) = (serial::take_com2_interrupt(), self.next != 0 && now >= self.next);
        if received > 0 && is_due && !has_interrupted && !is_upload {
            self.found += 1;
            if self.found.is_power_of_two() {
                log::info!("COM2: {received} bytes came without an interrupt, {} times so far", self.found);
            }
        }
        self.next = now + timer::us_to_ticks(if is_upload { UPLOAD_INTERVAL_US } else { INTERVAL_US });
    }
}
