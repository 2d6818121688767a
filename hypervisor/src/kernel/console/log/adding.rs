// SPDX-License-Identifier: MIT OR Apache-2.0
//! Giving a CPU its ring.

use klog::{Copied, Cursor, Reach, Ring, Step};
use units::PhysRange;

use super::rings::{EARLY, FRAMES, RINGS, clock, copy, has_ring};
use super::{drain, heritage};
use crate::arch::memory as frames;
use crate::kernel::inherited;

/// Gives CPU `index`, which does not run yet, a ring of `bytes` in memory that outlasts this image; one that has
/// been here before keeps its ring. The boot CPU's takes over what has been logged so far.
pub fn add_ring(index: u32, bytes: u64) {
    let (Some(slot), Some(range_slot)) = (RINGS.get(index as usize), FRAMES.get(index as usize)) else { return };
    if let Some(ring) = slot.get() {
        ring.restart();
        return;
    }
    let made = frames::permanent_words(bytes);
    let Some((start, words)) = made else {
        log::error!("CPU {index} has no log of its own: no memory for it; give the machine more");
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
        Err(error) => log::error!("CPU {index} has no log of its own: {error}"),
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

/// Takes over the logs of CPUs that do not run, too.
pub fn collect() {
    inherited::logs().filter(|(cpu, _)| !has_ring(*cpu)).for_each(|(cpu, bytes)| add_ring(cpu, bytes));
}
