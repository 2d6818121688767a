// SPDX-License-Identifier: MIT OR Apache-2.0
//! Giving a CPU its ring.

use klog::{Copied, Cursor, Reach, Ring, Step};
use units::PhysRange;

use super::rings::{EARLY, Placed, RING, clock, copy, has_ring};
use super::{drain, predecessor};
use crate::arch::memory as frames;
use crate::kernel::inherited;

/// Gives CPU `index`, which does not run yet, a ring of `bytes` in memory that outlasts this image; one that has
/// been here before keeps its ring. The boot CPU's takes over what has been logged so far.
pub fn add_ring(index: u32, bytes: u64) {
    let Some(place) = RING.of(index) else { return };
    if let Some(placed) = place.get() {
        placed.ring.restart();
        return;
    }
    let made = frames::permanent_words(bytes);
    let Some((start, words)) = made else {
        log::error!("CPU {index} has no log of its own: no memory for it; give the machine more");
        return;
    };
    match Ring::new(words, index, clock()) {
        Ok(ring) => {
            predecessor::take_over(&ring);
            let mut cursor = Cursor::start();
            if index == 0 {
                take_over(&ring, &mut cursor);
                drain::follow_move(&ring);
            }
            let range = PhysRange::from_start(start, bytes).unwrap_or_default();
            let placed = place.call_once(|| Placed { ring, range });
            if index == 0 {
                // Records that an NMI may have logged meanwhile.
                take_over(&placed.ring, &mut cursor);
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
