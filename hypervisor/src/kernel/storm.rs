// SPDX-License-Identifier: MIT OR Apache-2.0
//! A load for a measurement (`measure=log-storm`): 600 disks announce themselves, six lines each, on all CPUs at
//! once, while guests run.
//!
//! Each CPU's loop logs a few lines every millisecond until all are logged: some 400 kB, of a driver that a real
//! host was stalled by.

use core::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use crate::arch::timer;
use crate::kernel::console;

/// Lines in all.
const LINES: u32 = 3600;
/// A CPU's next lines come after this time.
const PAUSE_US: u64 = 1000;
/// The number of lines at once.
const LINES_AT_ONCE: u32 = 2;

/// The phase: one of the following.
static PHASE: AtomicU8 = AtomicU8::new(CALM);
const CALM: u8 = 0;
const BLOWING: u8 = 1;
/// All is logged, not all is printed.
const DRAINING: u8 = 2;
/// The next line's number.
static NEXT: AtomicU32 = AtomicU32::new(0);
/// Lines that are in the log.
static LOGGED: AtomicU32 = AtomicU32::new(0);

/// Lets it begin as soon as the CPUs are in their loops.
pub fn order() {
    PHASE.store(BLOWING, Ordering::Relaxed);
}

/// One CPU's part of it.
pub struct Storm {
    next_at: u64,
}

impl Storm {
    /// Not begun.
    pub const fn new() -> Self {
        Self { next_at: 0 }
    }

    /// Logs the lines that are due.
    #[inline]
    pub fn step(&mut self, now: u64) {
        let phase = PHASE.load(Ordering::Relaxed);
        if phase != CALM && now >= self.next_at {
            self.blow(phase, now);
        }
    }

    /// Not inlined: the loop that runs vCPUs keeps its registers for these.
    #[cold]
    #[inline(never)]
    fn blow(&mut self, phase: u8, now: u64) {
        self.next_at = now + timer::us_to_ticks(PAUSE_US);
        if phase == BLOWING {
            log_lines();
        } else if console::is_done() && PHASE.swap(CALM, Ordering::Relaxed) == DRAINING {
            console::report();
            log::info!("storm: over");
        }
    }

    /// Returns when the next lines are due.
    pub fn next_alarm(&self) -> Option<u64> {
        (PHASE.load(Ordering::Relaxed) != CALM).then_some(self.next_at)
    }
}

fn log_lines() {
    for _ in 0..LINES_AT_ONCE {
        let line = NEXT.fetch_add(1, Ordering::Relaxed);
        if line >= LINES {
            return;
        }
        let (disk, what) = (line / 6, WORDS[(line % 6) as usize]);
        log::info!("storm {line:04}/{LINES}: sd {}:0:{}:0: [sd{disk}] {what}.", disk / 16, disk % 16);
        if LOGGED.fetch_add(1, Ordering::Relaxed) + 1 == LINES {
            PHASE.store(DRAINING, Ordering::Relaxed);
        }
    }
}

const WORDS: [&str; 6] = [
    "2097152 512-byte logical blocks: 1 GiB",
    "write protect is off; mode sense: 73 00 10 08",
    "write cache enabled, read cache enabled, DPO and FUA",
    "optimal transfer size 524288 bytes, preferred 512",
    "no partition table was found; the whole disk is used",
    "attached as a disk, generic node sg of the same number",
];
