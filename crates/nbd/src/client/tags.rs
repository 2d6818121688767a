// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tags of requests.

use crate::limits::REQUESTS;

/// Tags of the client's own requests: a flush that makes room in the journal, and what is written again.
pub(super) const OWN_FLUSH: u16 = REQUESTS as u16;
pub(super) const AGAIN: u16 = OWN_FLUSH + 1;

/// Returns the tags of a set.
pub(super) fn tags(mut set: u128) -> impl Iterator<Item = u16> {
    core::iter::from_fn(move || {
        let tag = (set != 0).then(|| set.trailing_zeros() as u16)?;
        set &= set - 1;
        Some(tag)
    })
}
