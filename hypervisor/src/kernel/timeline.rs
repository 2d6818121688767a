// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's timeline: each CPU's ring of spans and instants, from the image's first instruction on.
//!
//! The boot CPU begins with a small ring in the image. Once there is memory, each CPU has one in frames
//! that are handed over to the next image, which goes on in them: a span may begin in one image and end in the next.
//!
//! ```text
//! let _span = timeline::span(Name::Firmware, 0);     from here to the end of the block
//! timeline::instant(Name::GuestStarted, guest);      now
//! ```

use core::sync::atomic::AtomicU64;

use ::frames::FrameRange;
use spin::Once;
use units::{PAGE_BYTES, PhysRange};

pub use timeline::{Kind, Name, Ring};
use timeline::{Point, ring_words};

use crate::arch::cpu_local::cpu_local;
use crate::arch::percpu::{BOOT_CPU, PerCpu};
use crate::arch::{cpu, memory as frames};

/// Records of the ring in the image: enough for what happens before there is memory.
const EARLY_RECORDS: usize = 64;
/// Records of the boot CPU's ring and of each other one's.
const BOOT_RECORDS: usize = 2048;
const OTHER_RECORDS: usize = 128;

static EARLY_MEMORY: [AtomicU64; ring_words(EARLY_RECORDS)] = [const { AtomicU64::new(0) }; ring_words(EARLY_RECORDS)];
static EARLY: Once<Ring<'static>> = Once::new();

cpu_local! {
    /// The CPU's ring in frames, and where these are.
    static RING: Once<(Ring<'static>, PhysRange)> = Once::new();
}

/// Begins to record, first of all the way from the image's first instruction at `entered_at` to here.
pub fn start(entered_at: u64) {
    if let Ok(ring) = Ring::new(&EARLY_MEMORY, BOOT_CPU) {
        EARLY.call_once(|| ring);
    }
    spent(Name::Entry, 0, entered_at, cpu::tsc());
}

/// Records when the first instruction of this image, the `generation`th, was, and with it where the way from the image
/// before ended.
pub fn entered(at: u64, generation: u64) {
    let generation = generation as u32;
    if generation > 1 {
        append(Kind::End, Name::SwitchPages, generation, at);
    }
    append(Kind::Instant, Name::FirstInstruction, generation, at);
}

/// The rings of the image before, in these frames, become this one's, and the boot CPU gets one if it has none.
/// Call once this image's own page tables show them.
pub fn adopt(inherited: impl Iterator<Item = FrameRange>) {
    for frames in inherited {
        let range = frames.range();
        match Ring::adopt(frames::adopted_words(frames)) {
            Ok(ring) => keep(ring, range),
            Err(error) => log::warn!("the timeline before this image at {range}: {error}"),
        }
    }
    add_ring(BOOT_CPU);
    let Some(early) = EARLY.get() else { return };
    // The CPU that interrupts this writes into the new ring already.
    let points = (early.oldest()..early.written()).filter_map(|number| early.get(number));
    points.for_each(|point| ring(BOOT_CPU).into_iter().for_each(|ring| ring.append(point)));
}

/// Gives CPU `index`, which does not run yet, a ring of its own, unless it has one.
pub fn add_ring(index: u32) {
    if RING.of(index).is_none_or(Once::is_completed) {
        return;
    }
    let records = if index == BOOT_CPU { BOOT_RECORDS } else { OTHER_RECORDS };
    let bytes = (ring_words(records) as u64 * 8).next_multiple_of(PAGE_BYTES);
    let made = frames::permanent_words(bytes);
    let made =
        made.and_then(|(start, words)| Some((Ring::new(words, index).ok()?, PhysRange::from_start(start, bytes)?)));
    match made {
        Some((ring, range)) => keep(ring, range),
        None => log::error!("CPU {index} has no timeline: no memory for it; give the machine more"),
    }
}

fn keep(ring: Ring<'static>, range: PhysRange) {
    if let Some(place) = RING.of(ring.cpu()) {
        place.call_once(|| (ring, range));
    }
}

/// The ring of CPU `index`.
#[inline]
pub fn ring(index: u32) -> Option<&'static Ring<'static>> {
    let in_frames = RING.of(index)?.get().map(|(ring, _)| ring);
    in_frames.or_else(|| if index == BOOT_CPU { EARLY.get() } else { None })
}

/// The frames that hold the rings, for the next image.
pub fn memory() -> impl Iterator<Item = PhysRange> {
    RING.all().filter_map(|(_, place)| place.get().map(|(_, range)| *range))
}

/// Records something on the calling CPU, in any context, once that has its own data.
#[inline(never)]
pub fn note(kind: Kind, name: Name, argument: u32) {
    if let Some(ring) = ring(PerCpu::current_index()) {
        ring.write(kind, name, argument, cpu::tsc);
    }
}

/// Records an instant.
#[inline]
pub fn instant(name: Name, argument: u32) {
    note(Kind::Instant, name, argument);
}

/// A span begins that another place ends, or the next image.
#[inline]
pub fn begin(name: Name, argument: u32) {
    note(Kind::Begin, name, argument);
}

/// The span of this name and argument ends.
#[inline]
pub fn end(name: Name, argument: u32) {
    note(Kind::End, name, argument);
}

/// A span of the past, in ticks.
pub fn spent(name: Name, argument: u32, from: u64, to: u64) {
    append(Kind::Begin, name, argument, from);
    append(Kind::End, name, argument, to);
}

/// A span of the past on CPU `index`, in ticks.
pub fn spent_on(index: u32, name: Name, argument: u32, from: u64, to: u64) {
    append_on(index, Kind::Begin, name, argument, from);
    append_on(index, Kind::End, name, argument, to);
}

fn append(kind: Kind, name: Name, argument: u32, ticks: u64) {
    append_on(PerCpu::current_index(), kind, name, argument, ticks);
}

fn append_on(index: u32, kind: Kind, name: Name, argument: u32, ticks: u64) {
    let point = Point { ticks, name: name as u16, kind, argument };
    ring(index).into_iter().for_each(|ring| ring.append(point));
}

/// A span that ends when this is dropped.
#[must_use = "the span ends where this is dropped"]
pub struct Span(Name, u32);

/// A span begins.
#[inline]
pub fn span(name: Name, argument: u32) -> Span {
    begin(name, argument);
    Span(name, argument)
}

impl Drop for Span {
    fn drop(&mut self) {
        end(self.0, self.1);
    }
}
