// SPDX-License-Identifier: MIT OR Apache-2.0
//! Possible places of an allocation, and their cost.

use units::{PAGE_BYTES, PageSize, PhysAddr, PhysRange};

/// A place for a request. The smallest is the best: the field order is the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// Distance from the requested memory, in the caller's unit; 0 is the requested memory itself.
    pub(crate) distance: u8,
    /// Whole 1 GiB frames broken or used up.
    pub(crate) gigabytes_lost: u64,
    /// Whole 2 MiB frames broken or used up.
    pub(crate) megabytes_lost: u64,
    /// Bytes that would have to be cleared, where the caller counts them.
    pub(crate) dirty_bytes: u64,
    /// Size in bytes of the extent that is cut.
    pub(crate) extent_bytes: u64,
    /// The place itself, so that the lower of two equals is taken and no two places are equal.
    pub(crate) range: PhysRange,
}

/// Returns the lowest and the highest place for `bytes` bytes in both `extent` and `window`. Those in between break as
/// much.
pub(crate) fn places(
    extent: PhysRange,
    window: PhysRange,
    bytes: u64,
    alignment: PageSize,
) -> impl Iterator<Item = Place> {
    let bytes = bytes.max(1).checked_next_multiple_of(PAGE_BYTES);
    let room = extent.intersection(window);
    let starts = room.zip(bytes).into_iter().flat_map(move |(room, bytes)| {
        let highest = room.end().0.checked_sub(bytes).map(|start| PhysAddr(start).align_down(alignment.bytes()));
        let ends = [room.start().align_up(alignment.bytes()), highest];
        ends.into_iter()
            .flatten()
            .filter_map(move |start| PhysRange::from_start(start, bytes).filter(|range| room.contains_range(*range)))
    });
    starts.map(move |range| Place {
        distance: 0,
        gigabytes_lost: lost(extent, range, PageSize::Gib1),
        megabytes_lost: lost(extent, range, PageSize::Mib2),
        dirty_bytes: 0,
        extent_bytes: extent.bytes(),
        range,
    })
}

/// Returns how many whole frames of `size` in `extent` overlap `range`.
fn lost(extent: PhysRange, range: PhysRange, size: PageSize) -> u64 {
    let touched = range.aligned_outwards(size.bytes());
    touched
        .and_then(|touched| touched.intersection(extent.aligned_inwards(size.bytes())))
        .map_or(0, |whole| whole.bytes() / size.bytes())
}
