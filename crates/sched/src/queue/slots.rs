// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sets of slots, a bit each.

/// Returns the slots with their bits set, from the lowest.
#[inline]
pub(super) fn slots_of(mut bits: u64) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        if bits == 0 {
            return None;
        }
        let slot = bits.trailing_zeros() as usize;
        bits &= bits - 1;
        Some(slot)
    })
}
