// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory that the image before has left, until it is given back.

use frames::FrameRange;
use handover::Items;
use handover::block::{self, Owner};
use handover::layout::{LogRing, Purpose, Stamps};
use handover::state::Late;
use units::{PhysAddr, PhysRange};

use super::channel_state::{ChannelState, channel_state_of};
use super::record::{RECORD, record};
use crate::arch::memory;

/// Returns how many records the image before has logged on this CPU of its; `None` if it has left no log of it.
pub fn logged(cpu: u32) -> Option<u64> {
    ring_of(cpu).map(|ring| ring.records.get())
}

/// Shows what the image before has logged on this CPU of its: a ring, by its own account. Call while it is kept,
/// and once this image's own page tables show it.
pub fn with_log(cpu: u32, visit: impl FnOnce(&[u8])) {
    let Some(ring) = ring_of(cpu) else { return };
    let range = PhysRange::from_start(PhysAddr(ring.start.get()), ring.bytes.get());
    if let Some(mut frames) = range.and_then(FrameRange::adopt) {
        visit(memory::bytes_of(&mut frames));
        // It stays kept until all that is kept is given back.
        frames.leak();
    }
}

fn ring_of(cpu: u32) -> Option<LogRing> {
    let record = RECORD.lock();
    record.as_ref()?.log.iter().find(|ring| ring.cpu.get() == cpu)
}

/// Frames with rings of the timeline, which this image goes on in.
pub fn timelines() -> impl Iterator<Item = FrameRange> {
    RECORD.lock().map(|record| record.kept_for(Purpose::Timeline)).into_iter().flatten().filter_map(FrameRange::adopt)
}

/// The CPUs with a log ring, and the ring's bytes.
pub fn logs() -> impl Iterator<Item = (u32, u64)> {
    let rings = RECORD.lock().map_or(Items::EMPTY, |record| record.log);
    rings.iter().map(|ring| (ring.cpu.get(), ring.bytes.get()))
}

/// Runs `adopt` on the events of the image before, and the number of the next one. An image that left no events has
/// left that number.
pub fn with_events(adopt: impl Fn(&[u8], u64)) {
    let next = record().and_then(|record| record.control).map_or(0, |control| control.events.get());
    let is_adopted = with_late(|late, tail| adopt(tail, late.control.events.get()));
    if is_adopted.is_none() {
        adopt(&[], next);
    }
}

/// Returns what the image before handed over last of all: the control channel's state, and when guests stopped. For an
/// image that has taken over.
pub fn late() -> Option<(ChannelState, Stamps)> {
    with_late(|late, _| (channel_state_of(late.control), late.stamps))
}

/// Shows the block of what the image before handed over last, and what is in its tail.
fn with_late<T>(visit: impl FnOnce(Late, &[u8]) -> T) -> Option<T> {
    let place = (*RECORD.lock())?.block_of(handover::state::BlockKind::Late, 0, 0)?;
    let visited = with_block(place.start.get(), place.bytes.get(), |bytes| {
        block::open::<Late>(bytes, Owner { guest: 0, vcpu: 0 }).map(|(late, tail)| visit(late, tail))
    });
    visited?.inspect_err(|error| log::error!("hand-over state of the image before: {error}")).ok()
}

/// Shows memory that is kept for a block.
pub fn with_block<T>(start: u64, bytes: u64, visit: impl FnOnce(&[u8]) -> T) -> Option<T> {
    let mut frames = PhysRange::from_start(PhysAddr(start), bytes).and_then(FrameRange::adopt)?;
    let shown = visit(memory::bytes_of(&mut frames));
    // It stays kept until all that is kept is given back.
    frames.leak();
    Some(shown)
}
