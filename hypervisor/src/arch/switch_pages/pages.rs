// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pages between two images, found by an address.

use ::update::trial::{PAGE_BYTES, TrialPage};

use crate::arch::address::SWITCH_PAGES;

/// More than any switch pages have.
const MAXIMUM_BYTES: u64 = 2 << 20;

/// A CPU's page as an image on trial sees it; `None` unless it is one that the switch pages can show.
pub fn own_page(at: u64) -> Option<&'static TrialPage> {
    let is_there = (SWITCH_PAGES..SWITCH_PAGES + MAXIMUM_BYTES).contains(&at) && at.is_multiple_of(PAGE_BYTES as u64);
    // SAFETY: an image is informed of such a page only by the old one, which has put it there in both images' tables
    // until the trial is over; all of it is atomic words.
    is_there.then(|| unsafe { &*(at as *const TrialPage) })
}
