// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rings that keep the log: one for each CPU, in frames that nothing else gets. The next image is informed of them
//! ([`legacies`]), and continues them.

use core::fmt;
use core::sync::atomic::AtomicU64;

use klog::{Clock, Copied, Level, Memory as _, Ring};
use spin::Once;
use units::{ByteSize, PAGE_BYTES, PhysRange};

use crate::arch::cpu_local::cpu_local;
use crate::arch::percpu::PerCpu;
use crate::arch::{cpu, cpu_local, timer};

/// Words of the first ring: enough for what is logged before there is memory.
const EARLY_WORDS: usize = 1024;
/// The boot CPU's first ring, in the image.
pub static EARLY_MEMORY: [AtomicU64; EARLY_WORDS] = [const { AtomicU64::new(0) }; EARLY_WORDS];
pub static EARLY: Once<Ring<'static>> = Once::new();

/// A ring in frames.
pub struct Placed {
    pub ring: Ring<'static>,
    /// Its physical range.
    pub range: PhysRange,
}

cpu_local! {
    /// The CPU's ring, once it has one in frames.
    pub static RING: Once<Placed> = Once::new();
}

/// The clock has been measured: times of all records are as it reports.
pub fn set_clock() {
    (0..count()).filter_map(ring).for_each(|ring| ring.set_clock(clock()));
}

pub fn clock() -> Clock {
    Clock { origin: timer::origin(), hz: timer::tsc_hz() }
}

/// Returns the greatest number of CPUs that may have a ring.
pub fn count() -> usize {
    cpu_local::count() as usize
}

/// The ring of CPU `index`.
#[inline]
pub fn ring(index: usize) -> Option<&'static Ring<'static>> {
    let in_frames = in_frames(index as u32).map(|placed| &placed.ring);
    in_frames.or_else(|| if index == 0 { EARLY.get() } else { None })
}

/// The ring of the CPU `index` that is in frames.
#[inline]
pub fn in_frames(index: u32) -> Option<&'static Placed> {
    RING.of(index)?.get()
}

/// The frames that hold the rings. They describe themselves (`klog::layout`): [`klog::Foreign`] reads them.
pub fn memory() -> impl Iterator<Item = PhysRange> {
    RING.all().filter_map(|(_, place)| place.get().map(|placed| placed.range))
}

/// A ring as the next image finds it.
#[derive(Clone, Copy, Debug)]
pub struct Legacy {
    /// Its owner.
    pub cpu: u32,
    /// Whole frames.
    pub range: PhysRange,
    /// The number that its next record gets.
    pub records: u64,
}

/// The rings, for the next image.
pub fn legacies() -> impl Iterator<Item = Legacy> {
    RING.all().filter_map(|(cpu, place)| {
        let Placed { ring, range } = place.get()?;
        let range = PhysRange::from_start(range.start(), range.bytes().next_multiple_of(PAGE_BYTES))?;
        Some(Legacy { cpu, range, records: ring.written() })
    })
}

/// Returns whether CPU `index` has a ring of its own.
pub fn has_ring(index: u32) -> bool {
    in_frames(index).is_some()
}

/// Logs how much memory the log has.
pub fn log_memory() {
    let bytes = memory().map(PhysRange::bytes).sum();
    log::debug!("log: {} in {} rings", ByteSize(bytes), memory().count());
}

/// Writes a record that came from another ring.
pub fn copy(copied: &Copied, ring: &Ring<'_>) {
    let record = copied.record(0, Clock::default());
    ring.write(record.level, record.module, format_args!("{}", record.text), || copied.ticks());
}

/// Writes a record into the calling CPU's ring. In any context: nothing here waits, allocates, or takes a lock.
/// Records of a CPU without a ring are lost: no CPU writes another's ring.
#[inline]
pub fn write(level: Level, path: &str, text: fmt::Arguments<'_>) {
    if let Some(ring) = ring(PerCpu::current_index() as usize) {
        ring.write(level, path, text, cpu::tsc);
    }
}
