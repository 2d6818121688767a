// SPDX-License-Identifier: MIT OR Apache-2.0
//! The hand-over to the next image: its content, and the way there.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use handover::image::Reader;

use super::composing::Composed;
use super::files::Files;
use super::source::Source;
use super::staged_image::Trusted;
use crate::arch::memory::OwnedFrames;
use crate::arch::switch_pages::SwitchPages;
use crate::kernel::cpus::Member;
use crate::lifecycle::update::hand_over_state::HandOverState;

/// A restart that only has to be gone through with. Dropped, it gives everything back.
pub struct Staged {
    /// The content.
    pub hand_over: Box<HandOver>,
    /// The way.
    pub switch_pages: SwitchPages,
}

/// The hand-over to the new image.
pub struct HandOver {
    /// Number of images that will have run.
    pub generation: u64,
    /// The new image.
    pub next: Box<Trusted>,
    /// The file that it comes from.
    pub source: Source,
    /// The host's configuration, if it has changed.
    pub bundle: Option<Composed>,
    /// For the record.
    pub record: OwnedFrames,
    /// The hand-over version that is written for it.
    pub version: u32,
    /// In an update, the new image's memory while this one still owns the rest.
    pub staging_memory: Option<OwnedFrames>,
    /// In an update, the files of the new image and of this one, as far as there is one.
    pub files: Option<Files>,
    /// Seconds within which a client is to confirm the update, if that is wanted.
    pub confirm_within_s: Option<u32>,
    /// The hand-over state of the host and, in an update, of guests.
    pub hand_over_state: Arc<HandOverState>,
    /// Every CPU that takes part, this one first.
    pub members: Vec<Member>,
}

impl HandOver {
    /// The image that reads it.
    pub fn reader(&self) -> Reader {
        self.next.image.reader(self.version)
    }
}
