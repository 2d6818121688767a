// SPDX-License-Identifier: MIT OR Apache-2.0
//! Room for what is needed before there is a ledger: the ledger itself.

use units::{PAGE_BYTES, PhysRange};

/// The lowest whole frames of `usable` and `window` that hold `bytes` bytes and overlap nothing taken; `taken` gives a
/// part of what it is asked for that is.
pub fn find_room(
    usable: &[PhysRange],
    window: PhysRange,
    bytes: u64,
    taken: &dyn Fn(PhysRange) -> Option<PhysRange>,
) -> Option<PhysRange> {
    let bytes = bytes.max(1).checked_next_multiple_of(PAGE_BYTES)?;
    usable.iter().filter_map(|range| range.intersection(window)).find_map(|range| {
        let mut at = range.start();
        loop {
            let room =
                PhysRange::from_start(at.align_up(PAGE_BYTES)?, bytes).filter(|room| range.contains_range(*room))?;
            match taken(room) {
                None => return Some(room),
                Some(part) => at = part.end(),
            }
        }
    })
}
