// SPDX-License-Identifier: MIT OR Apache-2.0
//! The log as lines for a console, each once, whichever CPU prints them.

use core::fmt::{self, Write};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use klog::{Copied, Cursor, Memory as _, Merge, Merged, Reach, Ring};

use super::rings::{RINGS, ring};
use crate::arch::percpu::MAX_CPUS;

/// Bytes that the longest line takes, its end included: every character of a record may print as an escape.
pub const LINE_BYTES: usize = 2048;

/// The position up to which each ring has been printed: the CPU that prints next, after the end of the host too, goes
/// on there.
static PRINTED: [AtomicU64; MAX_CPUS] = [const { AtomicU64::new(0) }; MAX_CPUS];

/// The number of rings that do not begin with what is to be printed first: [`PRINTED`] states where that is.
static BEGUN: AtomicU32 = AtomicU32::new(0);

/// Nothing that `ring` holds now is to be printed. Called before anybody reads it.
pub fn begin_with(ring: &Ring<'_>) {
    if let Some(printed) = PRINTED.get(ring.cpu() as usize) {
        printed.store(Cursor::newest(ring).to_word(), Ordering::Relaxed);
        BEGUN.fetch_add(1, Ordering::Release);
    }
}

/// The boot CPU's records move into `ring`, where they have the same numbers and other places.
pub fn follow_move(ring: &Ring<'_>) {
    let sequence = Cursor::from_word(PRINTED[0].load(Ordering::Relaxed)).sequence();
    PRINTED[0].store(Cursor::at(ring, sequence).to_word(), Ordering::Relaxed);
}

/// A reader of the whole log: lines in the order of their time stamps. What was lost is a line of its own.
pub struct Drain {
    merge: Merge<MAX_CPUS>,
    copied: Copied,
    reach: Reach,
    /// The boot CPU's records have moved from the first ring into its own.
    has_moved: bool,
    /// The number of rings that it has begun with behind what another image has printed.
    begun: u32,
}

impl Drain {
    /// Begins with the oldest record. One at a time prints.
    pub const fn new() -> Self {
        Self { merge: Merge::new(), copied: Copied::new(), reach: Reach::Complete, has_moved: false, begun: 0 }
    }

    /// For the end of the host: goes on where the CPU that printed last has come to, and reads every record that is
    /// complete, though the writer of one before it never came back. In any context, and in place: there, stacks are
    /// small.
    pub fn read_everything(&mut self) {
        self.reach = Reach::Everything;
        self.has_moved = RINGS[0].is_completed();
        for (index, printed) in PRINTED.iter().enumerate() {
            self.merge.set_cursor(index, Cursor::from_word(printed.load(Ordering::Relaxed)));
        }
    }

    /// Puts the next line into `line`, its end (CR, LF) included, cut where `line` is too short ([`LINE_BYTES`] is
    /// enough); returns how many bytes it has. `None`: nothing new.
    pub fn next_line(&mut self, line: &mut [u8]) -> Option<usize> {
        self.pass_over();
        self.follow_move();
        let found = self.merge.next(ring, self.reach, &mut self.copied)?;
        let mut into = Line { bytes: line, used: 0 };
        // What does not fit is cut, and that is all that can go wrong.
        let _ = match found {
            Merged::Lost { ring, records } => write!(into, "cpu{ring}: … {records} records lost\r\n"),
            Merged::Record { ring: index } => match ring(index) {
                Some(ring) => write!(into, "{}\r\n", self.copied.record(index as u32, ring.clock())),
                None => Ok(()),
            },
        };
        let used = into.used;
        let (Merged::Lost { ring, .. } | Merged::Record { ring }) = found;
        if let (Some(printed), Some(cursor)) = (PRINTED.get(ring), self.merge.cursor(ring)) {
            printed.store(cursor.to_word(), Ordering::Relaxed);
        }
        Some(used)
    }

    /// Passes over what another image has printed.
    fn pass_over(&mut self) {
        let begun = BEGUN.load(Ordering::Acquire);
        if begun == self.begun {
            return;
        }
        self.begun = begun;
        for (index, printed) in PRINTED.iter().enumerate() {
            if self.merge.cursor(index) == Some(Cursor::start()) {
                self.merge.set_cursor(index, Cursor::from_word(printed.load(Ordering::Relaxed)));
            }
        }
    }

    /// Numbers stay the same when records move into another ring, places do not.
    fn follow_move(&mut self) {
        if !self.has_moved
            && let Some(ring) = RINGS[0].get()
        {
            self.has_moved = true;
            let sequence = self.merge.cursor(0).map_or(0, |cursor| cursor.sequence());
            self.merge.set_cursor(0, Cursor::at(ring, sequence));
        }
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
