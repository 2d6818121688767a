// SPDX-License-Identifier: MIT OR Apache-2.0
//! The log: what every `log::info!` of the hypervisor goes through, the rings that keep it, and its readers.
//!
//! The boot processor begins with a small ring in the image. Once there is memory, each processor has one of its own,
//! in frames that nobody else gets: [`memory`] names them, so that a later image can read what this one said.

mod drain;
mod follower;
mod heritage;
mod wire;

use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use klog::{Clock, Copied, Cursor, Level, Memory as _, Reach, Ring, Step};
use spin::Once;
use units::{ByteSize, PAGE_BYTES, PhysRange};

pub use self::drain::{Drain, LINE_BYTES};
pub use self::follower::Follower;
pub use self::heritage::collect;
pub use self::wire::to_wire;
use crate::arch::percpu::{BOOT_PROCESSOR, MAX_PROCESSORS, PerCpu, wake};
use crate::arch::{cpu, memory as frames, timer};

/// Words of the first ring: enough for what is logged before there is memory.
const EARLY_WORDS: usize = 1024;

static EARLY_MEMORY: [AtomicU64; EARLY_WORDS] = [const { AtomicU64::new(0) }; EARLY_WORDS];
static EARLY: Once<Ring<'static>> = Once::new();
static RINGS: [Once<Ring<'static>>; MAX_PROCESSORS] = [const { Once::new() }; MAX_PROCESSORS];
/// Where each ring lies in physical memory.
static FRAMES: [Once<PhysRange>; MAX_PROCESSORS] = [const { Once::new() }; MAX_PROCESSORS];

/// Somebody on the control channel wants what is new.
static HAS_FOLLOWER: AtomicBool = AtomicBool::new(false);
/// Something was logged that the follower's processor has not been told of.
static HAS_NEWS: AtomicBool = AtomicBool::new(false);

struct Logger;

static LOGGER: Logger = Logger;

/// Starts logging what is at most `level`.
pub fn start(level: Level) {
    EARLY.call_once(|| match Ring::new(&EARLY_MEMORY, 0, clock()) {
        Ok(ring) => {
            heritage::count_on(&ring);
            ring
        }
        Err(error) => unreachable!("{error}"),
    });
    log::set_max_level(to_filter(level));
    // A second call fails and changes nothing: the logger is the same.
    let _ = log::set_logger(&LOGGER);
}

/// Gives processor `index`, which does not run yet, a ring of `bytes` in memory that outlasts this image; one that has
/// been here before keeps its ring. The boot processor's takes over what has been logged so far.
pub fn add_ring(index: u32, bytes: u64) {
    let (Some(slot), Some(range_slot)) = (RINGS.get(index as usize), FRAMES.get(index as usize)) else { return };
    if let Some(ring) = slot.get() {
        ring.begin_anew();
        return;
    }
    let made = frames::permanent_words(bytes);
    let Some((start, words)) = made else {
        log::error!("processor {index} has no log of its own: no memory for it; give the machine more");
        return;
    };
    match Ring::new(words, index, clock()) {
        Ok(ring) => {
            heritage::take_over(&ring);
            let mut cursor = Cursor::start();
            if index == 0 {
                take_over(&ring, &mut cursor);
                drain::follow_move(&ring);
            }
            slot.call_once(|| ring);
            if let Some(range) = PhysRange::from_start(start, bytes) {
                range_slot.call_once(|| range);
            }
            if index == 0 {
                // What an NMI may have logged meanwhile.
                take_over(&ring, &mut cursor);
            }
        }
        Err(error) => log::error!("processor {index} has no log of its own: {error}"),
    }
}

/// Copies what the first ring holds from `cursor` on.
fn take_over(ring: &Ring<'_>, cursor: &mut Cursor) {
    let Some(early) = EARLY.get() else { return };
    let mut copied = Copied::new();
    loop {
        match cursor.next(early, Reach::Complete, &mut copied) {
            Step::Record => copy(&copied, ring),
            // Those before the first, which another image has numbered.
            Step::Lost(_) => {}
            Step::Nothing => return,
        }
    }
}

/// Writes a record that came from another ring.
fn copy(copied: &Copied, ring: &Ring<'_>) {
    let record = copied.record(0, Clock::default());
    ring.write(record.level, record.module, format_args!("{}", record.text), || copied.ticks());
}

/// The clock has been measured: times of all records are as it says.
pub fn set_clock() {
    (0..MAX_PROCESSORS).filter_map(ring).for_each(|ring| ring.set_clock(clock()));
}

fn clock() -> Clock {
    Clock { origin: timer::origin(), hz: timer::tsc_hz() }
}

/// The ring of processor `index`.
#[inline]
pub fn ring(index: usize) -> Option<&'static Ring<'static>> {
    RINGS.get(index)?.get().or_else(|| if index == 0 { EARLY.get() } else { None })
}

/// Whether somebody follows the log.
pub fn set_followed(is_followed: bool) {
    HAS_FOLLOWER.store(is_followed, Ordering::Relaxed);
}

/// From each processor's loop: the one that serves followers learns of what others have logged.
pub fn tell_follower(me: &PerCpu) {
    if HAS_NEWS.load(Ordering::Relaxed) {
        HAS_NEWS.store(false, Ordering::Relaxed);
        if me.index != BOOT_PROCESSOR {
            wake(BOOT_PROCESSOR);
        }
    }
}

/// The frames that hold the rings. They describe themselves (`klog::layout`): [`klog::Foreign`] reads them.
pub fn memory() -> impl Iterator<Item = PhysRange> {
    FRAMES.iter().filter_map(|range| range.get().copied())
}

/// A ring as the next image finds it.
#[derive(Clone, Copy, Debug)]
pub struct Legacy {
    /// Whose.
    pub processor: u32,
    /// Whole frames.
    pub range: PhysRange,
    /// The number that its next record gets.
    pub records: u64,
}

/// The rings, for the next image.
pub fn legacies() -> impl Iterator<Item = Legacy> {
    RINGS.iter().zip(&FRAMES).zip(0..).filter_map(|((ring, range), processor)| {
        let bytes = range.get()?.bytes().next_multiple_of(PAGE_BYTES);
        let range = PhysRange::from_start(range.get()?.start(), bytes)?;
        Some(Legacy { processor, range, records: ring.get()?.written() })
    })
}

/// Whether processor `index` has a ring of its own.
pub fn has_ring(index: u32) -> bool {
    RINGS.get(index as usize).is_some_and(Once::is_completed)
}

/// Logs how much memory the log has.
pub fn tell_memory() {
    let bytes = memory().map(PhysRange::bytes).sum();
    log::debug!("log: {} in {} rings", ByteSize(bytes), memory().count());
}

/// Writes a record into the calling processor's ring. In any context: nothing here waits, allocates, or takes a lock.
/// What a processor without a ring says is gone: nobody writes another's.
#[inline]
pub fn write(level: Level, path: &str, text: fmt::Arguments<'_>) {
    if let Some(ring) = ring(PerCpu::current_index() as usize) {
        ring.write(level, path, text, cpu::tsc);
    }
}

impl log::Log for Logger {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        write(from_log(record.level()), record.target(), *record.args());
        if HAS_FOLLOWER.load(Ordering::Relaxed) {
            HAS_NEWS.store(true, Ordering::Relaxed);
        }
        super::recorded();
    }

    fn flush(&self) {}
}

#[inline]
fn from_log(level: log::Level) -> Level {
    match level {
        log::Level::Error => Level::Error,
        log::Level::Warn => Level::Warn,
        log::Level::Info => Level::Info,
        log::Level::Debug => Level::Debug,
        log::Level::Trace => Level::Trace,
    }
}

fn to_filter(level: Level) -> log::LevelFilter {
    match level {
        Level::Error => log::LevelFilter::Error,
        Level::Warn => log::LevelFilter::Warn,
        Level::Info => log::LevelFilter::Info,
        Level::Debug => log::LevelFilter::Debug,
        Level::Trace => log::LevelFilter::Trace,
    }
}
