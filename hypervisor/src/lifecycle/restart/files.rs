// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files that images were made from, as they were sent or lay in a bundle: kept from one update to the next, so
//! that the image before can be gone back to. An image in its slot is no file any more: it has written its data.

use handover::Image;
use handover::layout::Purpose;
use units::PageSize;

use super::source::Source;
use crate::arch::boot::BUILD;
use crate::arch::memory::{FRAMES, OwnedFrames};
use crate::kernel::inherited::{self, FILE_LENGTH_BYTES};

/// Copies that are handed over to the next image.
pub struct Files {
    /// Of the next image.
    pub next: OwnedFrames,
    /// Of this one, if it is known.
    pub own: Option<OwnedFrames>,
}

impl Files {
    /// Copies for the image in `file`; `None` if there is no memory for them.
    pub fn of(file: &[u8]) -> Option<Self> {
        let next = copy(file)?;
        let own = match own() {
            Some(own) => Some(copy(own)?),
            None => None,
        };
        Some(Self { next, own })
    }
}

/// The file of the running image: kept, or, where a loader has started it, the bundle's if that is the same build.
pub fn own() -> Option<&'static [u8]> {
    if inherited::is_update() {
        return inherited::file(Purpose::File);
    }
    let file = Source::bundle().ok()?.resident()?;
    let image = Image::parse(file).ok()?;
    let is_same = image.note().version() == env!("CARGO_PKG_VERSION") && image.build() == BUILD && !BUILD.is_empty();
    is_same.then_some(file)
}

fn copy(file: &[u8]) -> Option<OwnedFrames> {
    let frames = FRAMES.lock().allocate((file.len() + FILE_LENGTH_BYTES) as u64, PageSize::Kib4).ok()?;
    let mut frames = OwnedFrames::new(frames);
    let (room, length) = frames.bytes_mut().split_last_chunk_mut::<FILE_LENGTH_BYTES>()?;
    room.get_mut(..file.len())?.copy_from_slice(file);
    *length = (file.len() as u64).to_le_bytes();
    Some(frames)
}
