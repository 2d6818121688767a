// SPDX-License-Identifier: MIT OR Apache-2.0
//! Search for memory before there is a ledger: for the ledger itself.

use units::{PAGE_BYTES, PhysRange};

/// Returns the lowest whole frames of `usable` and `window` that hold `bytes` bytes and overlap nothing taken. `taken`
/// returns a part of a range that is taken.
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
