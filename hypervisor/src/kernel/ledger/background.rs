// SPDX-License-Identifier: MIT OR Apache-2.0
//! The work of idle CPUs for memory, a piece at a time, interrupts open in between: records that were deferred, once
//! guests run; and what guests have left is scrubbed.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use frames::ScrubPiece;
use frames::records::{Progress, Records};
use spin::{Mutex, Once};

use crate::arch::memory::{self, FRAMES};
use crate::arch::percpu::{self, PerCpu};
use crate::arch::{cpu, timer};

/// Bytes that are scrubbed before it is checked whether there is something else to do: some 25 µs.
const PIECE_BYTES: u64 = 256 * 1024;
/// For each of these one more CPU is woken to help.
const BYTES_PER_HELPER: u64 = 64 << 20;

static DEFERRED: Once<&'static Records<'static>> = Once::new();
/// Guests run: what was deferred may be done.
static IS_OPEN: AtomicBool = AtomicBool::new(false);
static HAS_GUEST: AtomicBool = AtomicBool::new(false);
static STARTED_AT: Once<u64> = Once::new();
/// Bytes scrubbed since the log was last reported.
static SCRUBBED_BYTES: AtomicU64 = AtomicU64::new(0);
static HAS_TAINTED: AtomicBool = AtomicBool::new(false);
/// Number of callers for which no piece may be taken.
static SCRUB_PAUSES: AtomicU32 = AtomicU32::new(0);
/// A piece that could not be given back yet.
static KEPT: Mutex<Option<ScrubPiece>> = Mutex::new(None);

/// A pause of scrubbing: while there is one, no piece is taken.
pub struct ScrubPause;

impl ScrubPause {
    /// Begins a pause.
    pub fn begin() -> Self {
        SCRUB_PAUSES.fetch_add(1, Ordering::AcqRel);
        Self
    }
}

impl Drop for ScrubPause {
    fn drop(&mut self) {
        SCRUB_PAUSES.fetch_sub(1, Ordering::AcqRel);
    }
}

/// These records are to be written once guests run.
pub fn defer(records: &'static Records<'static>) {
    DEFERRED.call_once(|| records);
}

/// A guest is about to run its first instruction. Reports once what has been written until then.
pub fn guest_starts() {
    if !HAS_GUEST.swap(true, Ordering::AcqRel) {
        let written = FRAMES.lock().written_bytes();
        log::debug!("{written} bytes of metadata before the first guest");
    }
    open();
}

/// No guest waits for its start: all CPUs may do what was deferred.
pub fn open() {
    if IS_OPEN.swap(true, Ordering::AcqRel) {
        return;
    }
    STARTED_AT.call_once(cpu::tsc);
    if DEFERRED.get().is_some() {
        percpu::indices().for_each(percpu::wake);
    }
}

/// A guest has left so much memory: idle CPUs are woken to scrub it.
pub fn scrub(bytes: u64) {
    HAS_TAINTED.store(true, Ordering::Release);
    let me = PerCpu::current().index;
    let helpers = (bytes / BYTES_PER_HELPER) as usize;
    percpu::indices().filter(|index| *index != me).take(helpers).for_each(percpu::wake);
    percpu::wake(me);
}

/// Does some of what is to be done, and returns whether there is more. For a CPU that has nothing else to do.
pub fn step() -> bool {
    write_records() || scrub_piece()
}

fn write_records() -> bool {
    let Some(records) = DEFERRED.get().filter(|_| IS_OPEN.load(Ordering::Relaxed)) else { return false };
    match records.write_some() {
        Progress::More => true,
        Progress::Done => false,
        Progress::Finished => {
            let ticks = cpu::tsc() - STARTED_AT.get().copied().unwrap_or_default();
            let (bytes, us) = (records.written_bytes(), timer::ticks_to_ns(ticks) / 1000);
            log::debug!(
                "{bytes} bytes of records are written, the last {ticks} cycles ({us} us) after the first guest"
            );
            false
        }
    }
}

fn scrub_piece() -> bool {
    if !HAS_TAINTED.load(Ordering::Relaxed) || SCRUB_PAUSES.load(Ordering::Acquire) > 0 {
        return false;
    }
    HAS_TAINTED.store(false, Ordering::Release);
    let kept = KEPT.lock().take();
    let piece = kept.or_else(|| FRAMES.lock().begin_scrub(PIECE_BYTES));
    let Some(mut piece) = piece else {
        let bytes = SCRUBBED_BYTES.swap(0, Ordering::Relaxed);
        if bytes > 0 {
            log::debug!("{bytes} bytes are scrubbed");
        }
        return false;
    };
    HAS_TAINTED.store(true, Ordering::Release);
    memory::clear_piece(&mut piece);
    SCRUBBED_BYTES.fetch_add(piece.range().bytes(), Ordering::Relaxed);
    if let Err(piece) = FRAMES.lock().end_scrub(piece) {
        *KEPT.lock() = Some(piece);
        return false;
    }
    true
}
