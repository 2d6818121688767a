// SPDX-License-Identifier: MIT OR Apache-2.0
//! The log as lines for a console, each once, whichever CPU prints them.

use core::fmt::{self, Write};
use core::sync::atomic::{AtomicU64, Ordering};

use klog::{Copied, Cursor, Memory as _, Merge, Merged, Reach, Ring};

use super::cursors::CpuCursors;
use super::rings::ring;
use crate::arch::cpu_local::cpu_local;
use crate::arch::percpu::BOOT_CPU;

/// Bytes that the longest line takes, its end included: every character of a record may print as an escape.
pub const LINE_BYTES: usize = 2048;

cpu_local! {
    /// Position up to which the CPU's ring has been printed: the CPU that prints next, after the end of the host too,
    /// goes on there.
    static PRINTED: AtomicU64 = AtomicU64::new(0);
}

/// Marks all records in `ring` as printed. Called before the ring has a reader.
pub fn begin_with(ring: &Ring<'_>) {
    if let Some(printed) = PRINTED.of(ring.cpu()) {
        printed.store(Cursor::newest(ring).to_word(), Ordering::Relaxed);
    }
}

/// The boot CPU's records move into `ring`, where they have the same numbers and other places. Called before `ring` is
/// that CPU's.
pub fn follow_move(ring: &Ring<'_>) {
    let Some(printed) = PRINTED.of(BOOT_CPU) else { return };
    let sequence = Cursor::from_word(printed.load(Ordering::Relaxed)).sequence();
    printed.store(Cursor::at(ring, sequence).to_word(), Ordering::Relaxed);
}

/// A reader of the whole log: lines in the order of their time stamps. Lost records are reported in a line of their
/// own.
pub struct Drain {
    merge: Merge<CpuCursors>,
    copied: Copied,
    reach: Reach,
}

impl Drain {
    /// Goes on where printing has got to. One at a time prints.
    pub const fn new() -> Self {
        Self { merge: Merge::new(CpuCursors(&PRINTED)), copied: Copied::new(), reach: Reach::Complete }
    }

    /// For the end of the host: reads every record that is complete, though the writer of one before it never came
    /// back.
    pub fn read_everything(&mut self) {
        self.reach = Reach::Everything;
    }

    /// Puts the next line into `line`, its end (CR, LF) included, cut where `line` is too short ([`LINE_BYTES`] is
    /// enough); returns how many bytes it has. `None`: nothing new.
    pub fn next_line(&mut self, line: &mut [u8]) -> Option<usize> {
        let found = self.merge.next(ring, self.reach, &mut self.copied)?;
        let mut into = Line { bytes: line, used: 0 };
        // Text that does not fit is cut, and that is all that can go wrong.
        let _ = match found {
            Merged::Lost { ring, records } => write!(into, "cpu{ring}: … {records} records lost\r\n"),
            Merged::Record { ring: index } => match ring(index) {
                Some(ring) => write!(into, "{}\r\n", self.copied.record(index as u32, ring.clock())),
                None => Ok(()),
            },
        };
        Some(into.used)
    }
}

/// A line that is cut where its bytes end.
struct Line<'a> {
    bytes: &'a mut [u8],
    used: usize,
}

impl Write for Line<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = &mut self.bytes[self.used..];
        let count = text.len().min(room.len());
        room[..count].copy_from_slice(&text.as_bytes()[..count]);
        self.used += count;
        Ok(())
    }
}
