// SPDX-License-Identifier: MIT OR Apache-2.0
//! A record per frame, by the policy chosen: all written here and now (the baseline), or left to an idle CPU later.

use alloc::boxed::Box;

use arrayvec::ArrayVec;
use boot::options::FramePolicy;
use frames::records::{MAXIMUM_ZONES, Progress, Records, Shape, Tails, Zone};
use frames::{Frames, Node};
use units::PhysRange;

use super::background;
use crate::arch::memory::{self, FRAMES};

/// Makes room for the records that the policy wants, and writes those that it wants written now.
pub fn keep(policy: FramePolicy, is_hvo: bool, is_update: bool) {
    if policy == FramePolicy::Extents {
        return;
    }
    // Nothing is allocated while the ledger is locked.
    let place = Box::<Records<'static>>::new_uninit();
    let mut frames = FRAMES.lock();
    let mut zones = ArrayVec::new();
    for (range, node) in stretches(&frames) {
        match zone(&mut frames, range, node) {
            Some(zone) => zones.push(zone),
            None => log::warn!("no memory for the records of memory {range}: its frames have none"),
        }
    }
    let tails = if is_hvo { Tails::Omit } else { Tails::Write };
    let records: &'static Records<'static> = Box::leak(Box::write(place, Records::new(zones, tails)));
    frames.keep_records(records);
    match policy {
        // After an update guests run already: what the baseline would have them wait for is done beside them.
        FramePolicy::Eager if !is_update => while records.write_some() == Progress::More {},
        _ => background::defer(records),
    }
}

/// All memory, parted where its node changes, as many parts as can have records.
fn stretches(frames: &Frames<'static>) -> ArrayVec<(PhysRange, Node), MAXIMUM_ZONES> {
    let mut stretches = ArrayVec::new();
    for (range, node) in frames.stretches() {
        if stretches.try_push((range, node.unwrap_or(0))).is_err() {
            log::warn!("memory {range} is one stretch too many: its frames have no records");
        }
    }
    stretches
}

fn zone(frames: &mut Frames<'static>, range: PhysRange, node: Node) -> Option<Zone<'static>> {
    let shape = Shape::of(range);
    let room = frames.allocate_near(shape.bytes(), range).ok()?;
    let (records, blocks) = memory::records_in(room, shape);
    Zone::new(range, node, records, blocks)
}
