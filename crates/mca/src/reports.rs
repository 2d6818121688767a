// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rate limit of events about corrected errors: a bank that keeps reporting must not push everything else out of the
//! log.

/// Banks that are kept apart; those beyond share the last place.
const BANKS: usize = 64;

/// Findings of one CPU's polls, by bank.
#[derive(Debug)]
pub struct Reports {
    /// Polls from one report of a bank to the next.
    interval: u16,
    banks: [Bank; BANKS],
}

#[derive(Clone, Copy, Debug, Default)]
struct Bank {
    /// Polls that have found an error and were not reported.
    found: u16,
    /// Polls until the next report may be.
    wait: u16,
}

impl Reports {
    /// At most one report per bank in `interval` polls.
    pub const fn new(interval: u16) -> Self {
        Self { interval, banks: [Bank { found: 0, wait: 0 }; BANKS] }
    }

    /// Notes that a poll begins.
    pub fn begin_poll(&mut self) {
        self.banks.iter_mut().for_each(|bank| bank.wait = bank.wait.saturating_sub(1));
    }

    /// Notes that the poll has found a corrected error. Returns how many polls have found one since the last report, if
    /// it is to be reported now.
    pub fn note(&mut self, bank: u32) -> Option<u16> {
        let bank = &mut self.banks[(bank as usize).min(BANKS - 1)];
        bank.found = bank.found.saturating_add(1);
        if bank.wait > 0 {
            return None;
        }
        bank.wait = self.interval;
        Some(core::mem::take(&mut bank.found))
    }
}
