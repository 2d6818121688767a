// SPDX-License-Identifier: MIT OR Apache-2.0
//! The log of the image before, taken over into this image's rings: under its numbers, with its times. It is not
//! printed again.
//!
//! Each CPU's numbers go on where they stopped, so the reader of the log sees no gap. The first ring comes
//! before there is memory, and holds this image's records only, numbered from there.

use klog::{Copied, Cursor, Foreign, Ring, Step};

use super::drain;
use super::rings::copy;
use crate::kernel::inherited;

/// Numbers the first ring's records behind those of the image before.
///
/// An image on trial does not know yet how many there will be: its first ring's records are numbered when they move.
pub fn count_on(ring: &Ring<'_>) {
    if inherited::is_update() {
        return;
    }
    if let Some(records) = inherited::logged(ring.cpu()) {
        ring.count_from(records);
        drain::begin_with(ring);
    }
}

/// Copies what the image before has logged on this CPU into `ring`, which is empty.
pub fn take_over(ring: &Ring<'_>) {
    let Some(mut records) = inherited::logged(ring.cpu()) else { return };
    inherited::with_log(ring.cpu(), |bytes| match Foreign::adopt(bytes) {
        Ok(old) => {
            // It has logged since it reported.
            records = records.max(old.written());
            let mut kept = 0;
            each(&old, &mut |_| kept += 1);
            ring.count_from(records.saturating_sub(kept));
            each(&old, &mut |record| copy(record, ring));
        }
        Err(error) => log::warn!("the log of CPU {} before this image: {error}", ring.cpu()),
    });
    ring.count_from(records);
    if ring.cpu() != 0 || inherited::is_update() {
        drain::begin_with(ring);
    }
}

fn each(old: &Foreign<'_>, visit: &mut dyn FnMut(&Copied)) {
    let (mut cursor, mut copied) = (Cursor::oldest(old), Copied::new());
    loop {
        match cursor.next(old, Foreign::REACH, &mut copied) {
            Step::Record => visit(&copied),
            Step::Lost(_) => {}
            Step::Nothing => return,
        }
    }
}
