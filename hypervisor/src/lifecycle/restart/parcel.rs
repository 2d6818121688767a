// SPDX-License-Identifier: MIT OR Apache-2.0
//! What goes over to the next image, and the way there.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::candidate::Trusted;
use super::files::Files;
use super::source::Source;
use crate::arch::crossing::Crossing;
use crate::arch::memory::OwnedFrames;
use crate::kernel::processors::Member;
use crate::lifecycle::update::baggage::Baggage;

/// A restart that only has to be gone through with. Dropped, it gives everything back.
pub struct Staged {
    /// What goes over.
    pub parcel: Box<Parcel>,
    /// The way.
    pub crossing: Crossing,
}

/// What goes over to the new image.
pub struct Parcel {
    /// How many images will have run.
    pub generation: u64,
    /// The new image.
    pub next: Box<Trusted>,
    /// The file that it comes from.
    pub source: Source,
    /// For the record.
    pub record: OwnedFrames,
    /// The hand-over version that is written for it.
    pub version: u32,
    /// In an update, the new image's memory while this one still owns the rest.
    pub advance: Option<OwnedFrames>,
    /// In an update, the files of the new image and of this one, as far as there is one.
    pub files: Option<Files>,
    /// What goes over of the host and, in an update, of guests.
    pub baggage: Arc<Baggage>,
    /// Every processor that takes part, this one first.
    pub members: Vec<Member>,
}
