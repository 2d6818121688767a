// SPDX-License-Identifier: MIT OR Apache-2.0
//! NMIs and interrupts that no handler claims: they are counted, named and logged, and the host goes on.
//!
//! The chipset reports two sources of an NMI at port 0x61 (NMI_SC, "NMI Status and Control"; Intel 9 Series PCH
//! datasheet, section
//! 12.7.1):
//!
//! | bit | read | write |
//! |---|---|---|
//! | 7 | SERR#: a PCI system error | 0 |
//! | 6 | IOCHK#: an ISA channel check | 0 |
//! | 3 | | 1 disables IOCHK# and clears bit 6 |
//! | 2 | | 1 disables SERR# and clears bit 7 |
//!
//! A source that has interrupted is disabled: one that persists would interrupt for ever.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// NMI status and control.
pub const NMI_STATUS_PORT: u16 = 0x61;
const SERR: u8 = 1 << 7;
const IO_CHECK: u8 = 1 << 6;
const DISABLE_IO_CHECK: u8 = 1 << 3;
const DISABLE_SERR: u8 = 1 << 2;
/// Bits 4 to 7 are to be written as zeros.
const WRITABLE: u8 = 0x0f;
/// A port that no device answers at.
const ABSENT: u8 = 0xff;

/// Source of an NMI, as far as the chipset reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NmiSource {
    /// A PCI function, by SERR#.
    Serr,
    /// An ISA device, by IOCHK#.
    IoCheck,
    /// Both.
    SerrAndIoCheck,
    /// The chipset does not report it.
    Unknown,
}

impl NmiSource {
    /// Returns the source, from the value of [`NMI_STATUS_PORT`].
    pub const fn of(status: u8) -> Self {
        match (status & SERR != 0, status & IO_CHECK != 0) {
            _ if status == ABSENT => Self::Unknown,
            (true, true) => Self::SerrAndIoCheck,
            (true, false) => Self::Serr,
            (false, true) => Self::IoCheck,
            (false, false) => Self::Unknown,
        }
    }

    /// Returns its name, for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Serr => "PCI SERR#, now disabled",
            Self::IoCheck => "IOCHK#, now disabled",
            Self::SerrAndIoCheck => "PCI SERR# and IOCHK#, now disabled",
            Self::Unknown => "not reported by the chipset",
        }
    }

    /// Returns the value to write to [`NMI_STATUS_PORT`], which reads as `status`, so that it does not interrupt again.
    pub const fn disabled(self, status: u8) -> Option<u8> {
        let disable = match self {
            Self::Serr => DISABLE_SERR,
            Self::IoCheck => DISABLE_IO_CHECK,
            Self::SerrAndIoCheck => DISABLE_SERR | DISABLE_IO_CHECK,
            Self::Unknown => return None,
        };
        Some(status & WRITABLE | disable)
    }
}

/// Events of one kind that no handler claims. Any CPU counts, in any context.
#[derive(Debug)]
pub struct Strays {
    count: AtomicU64,
    /// Of the last one.
    vector: AtomicU32,
    /// The next line of the log may be written from here on, in ticks.
    next_line: AtomicU64,
    /// Counted since the last line.
    unlogged: AtomicU64,
}

/// The counts of an event that is to be logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Number of events, this one included.
    pub count: u64,
    /// Number of events after the last line of the log, which no line counts.
    pub unlogged: u64,
}

impl Strays {
    /// None has come.
    pub const fn new() -> Self {
        Self {
            count: AtomicU64::new(0),
            vector: AtomicU32::new(0),
            next_line: AtomicU64::new(0),
            unlogged: AtomicU64::new(0),
        }
    }

    /// Counts one with this vector, at `now`. It is to be logged unless another one was less than `interval` ticks
    /// before it.
    pub fn note(&self, vector: u8, now: u64, interval: u64) -> Option<Notice> {
        let count = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        self.vector.store(u32::from(vector), Ordering::Relaxed);
        let next = self.next_line.load(Ordering::Relaxed);
        let until = now.saturating_add(interval);
        let claim = || self.next_line.compare_exchange(next, until, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if now >= next && claim() {
            return Some(Notice { count, unlogged: self.unlogged.swap(0, Ordering::Relaxed) });
        }
        self.unlogged.fetch_add(1, Ordering::Relaxed);
        None
    }

    /// Returns how many have come.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Returns the vector of the last one, if one has come.
    pub fn last_vector(&self) -> Option<u8> {
        (self.count() > 0).then(|| self.vector.load(Ordering::Relaxed) as u8)
    }
}

impl Default for Strays {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
#[path = "stray_tests.rs"]
mod tests;
