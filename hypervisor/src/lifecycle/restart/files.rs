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

/// Bytes that are copied at a time: some microseconds' worth, for which guests on this CPU wait.
pub const SLICE_BYTES: usize = 8 * 1024;

/// Copies that are handed over to the next image.
pub struct Files {
    /// Of the next image.
    pub next: OwnedFrames,
    /// Of this one, if it is known.
    pub own: Option<OwnedFrames>,
}

/// Copies that are being made, a slice at a time.
pub struct FileCopies {
    next: FileCopy,
    /// With the file that it is a copy of.
    own: Option<(FileCopy, &'static [u8])>,
}

impl FileCopies {
    /// Finds memory for copies of the image in `file` and of this one's; `None` if there is none.
    pub fn begin(file: &[u8]) -> Option<Self> {
        let own = match own() {
            Some(own) => Some((FileCopy::begin(own)?, own)),
            None => None,
        };
        Some(Self { next: FileCopy::begin(file)?, own })
    }

    /// Copies a slice of the image in `file`, or of this one; returns whether all is there.
    pub fn step(&mut self, file: &[u8]) -> bool {
        self.next.step(file) && self.own.as_mut().is_none_or(|(copy, own)| copy.step(own))
    }

    /// Returns the copies, after copying what is left.
    pub fn finish(mut self, file: &[u8]) -> Files {
        while !self.step(file) {}
        Files { next: self.next.frames, own: self.own.map(|(own, _)| own.frames) }
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

/// One file in frames of its own, its length at their end.
struct FileCopy {
    frames: OwnedFrames,
    copied: usize,
}

impl FileCopy {
    fn begin(file: &[u8]) -> Option<Self> {
        let frames = FRAMES.lock().allocate((file.len() + FILE_LENGTH_BYTES) as u64, PageSize::Kib4).ok()?;
        let mut frames = OwnedFrames::new(frames);
        *frames.bytes_mut().last_chunk_mut::<FILE_LENGTH_BYTES>()? = (file.len() as u64).to_le_bytes();
        Some(Self { frames, copied: 0 })
    }

    fn step(&mut self, file: &[u8]) -> bool {
        let slice = self.copied..file.len().min(self.copied + SLICE_BYTES);
        if let (Some(from), Some(into)) = (file.get(slice.clone()), self.frames.bytes_mut().get_mut(slice.clone())) {
            handover::copy_changed(into, from);
        }
        self.copied = slice.end;
        self.copied == file.len()
    }
}
