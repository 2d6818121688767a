// SPDX-License-Identifier: MIT OR Apache-2.0
//! The copy of an image into its slot, a slice at a time while guests run; then it is locked where the policy states
//! it. The order of the steps is decided in [`::update::stage`].

use alloc::boxed::Box;
use core::mem;

use ::update::stage::{self, Described, Placer};
use handover::Image;
use seal::{Seal, Verify};
use units::{ByteSize, PageSize, PhysAddr};

use super::error::StageError;
use super::staged_image::{Slot, StagedImage, demands};
use super::terms::Terms;
use super::{files, trust};
use crate::arch::address::BOOT_MAPPED_BYTES;
use crate::arch::lock::{LockError, LockedFrames};
use crate::arch::memory::{self, OwnedFrames};
use crate::kernel::platform::options;

/// An image on its way into its slot.
pub struct ImageCopy {
    described: Described<Image, OwnedFrames>,
    policy: Verify,
    terms: Terms,
}

impl ImageCopy {
    /// Finds a slot for the image in `file`, if the host may run it.
    pub fn begin(file: &[u8], terms: Terms) -> Result<Box<Self>, StageError> {
        let wanted = options().map_or(Verify::default(), |options| options.verify);
        let policy = wanted.on_a_host_with_keys(!trust::keys().is_empty());
        if policy != wanted {
            log::warn!("option verify={wanted}: this host has keys, so images are checked ({policy})");
        }
        let described = stage::place(&mut Placing { file, terms }, demands(policy))?;
        Ok(Box::new(Self { described, policy, terms }))
    }

    /// Copies a slice; returns whether all is there.
    pub fn step(&mut self, file: &[u8]) -> bool {
        let Described { image, placing, .. } = &mut self.described;
        placing.step(&mut Placing { file, terms: self.terms }, image)
    }

    /// Copies what is left, and locks the slot.
    ///
    /// # Errors
    /// It cannot be locked.
    pub fn finish(self, file: &[u8]) -> Result<Box<StagedImage>, StageError> {
        let Self { described: Described { image, sealed_bytes, placing }, policy, terms } = self;
        let slot = placing.finish(&mut Placing { file, terms }, &image, demands(policy))?;
        Ok(StagedImage::new(image, slot, policy, sealed_bytes))
    }
}

/// An image on its way into its slot, or there.
pub enum Placement {
    /// It is being copied.
    Copying(Box<ImageCopy>),
    /// It is there, and being hashed.
    Placed(Box<StagedImage>),
    /// It cannot be locked.
    Failed(StageError),
}

impl Placement {
    /// Copies a slice, or hashes one; returns whether nothing is left to do.
    pub fn step(&mut self, file: &[u8]) -> bool {
        match self {
            Self::Copying(copy) => {
                if copy.step(file) {
                    let copied = mem::replace(self, Self::Failed(StageError::OutOfMemory("the new image")));
                    *self = copied.finish(file).map_or_else(Self::Failed, Self::Placed);
                }
                false
            }
            Self::Placed(image) => image.step(file),
            Self::Failed(_) => true,
        }
    }

    /// Returns the image in its slot, after copying what is left of it.
    ///
    /// # Errors
    /// It cannot be locked.
    pub fn finish(self, file: &[u8]) -> Result<Box<StagedImage>, StageError> {
        match self {
            Self::Copying(copy) => copy.finish(file),
            Self::Placed(image) => Ok(image),
            Self::Failed(error) => Err(error),
        }
    }
}

/// The file of an image that is put into a slot.
struct Placing<'a> {
    file: &'a [u8],
    terms: Terms,
}

impl Placer for Placing<'_> {
    type Image = Image;
    type Memory = OwnedFrames;
    type Slot = Slot;
    type Error = StageError;

    fn describe(&mut self) -> Result<Image, StageError> {
        Image::parse(self.file).map_err(StageError::Image)
    }

    /// Refuses an image that is older than this host admits, or that would not return where no client confirms it.
    fn admit(&mut self, image: &Image) -> Result<(), StageError> {
        let (version, floor) = (image.security_version(), trust::floor());
        if !self.terms.is_return {
            floor.admit(version, self.terms.is_downgrade).map_err(StageError::Downgrade)?;
        }
        if self.terms.confirm_within_s.is_some() {
            check_way_back(image)?;
        }
        if version < floor.own {
            log::warn!("image {} {}: a downgrade to security version {version}", image.note().version(), image.build());
        }
        Ok(())
    }

    fn sealed_bytes(&mut self) -> Result<u64, StageError> {
        Seal::split(self.file).map(|(sealed, _)| sealed.len() as u64).map_err(StageError::Seal)
    }

    fn allocate(&mut self, image: &Image) -> Result<OwnedFrames, StageError> {
        let slot_bytes = image.memory_bytes().next_multiple_of(handover::record::SLOT_ALIGNMENT);
        log::debug!("a slot of {} for the new image", ByteSize(slot_bytes));
        let frames = memory::FRAMES.lock().allocate_below(slot_bytes, PageSize::Mib2, PhysAddr(BOOT_MAPPED_BYTES));
        frames.map(OwnedFrames::new).map_err(|_| StageError::OutOfMemory("the new image"))
    }

    fn copy(&mut self, image: &Image, memory: &mut OwnedFrames, from: usize) -> Option<usize> {
        image.place(self.file, memory.bytes_mut(), from, files::SLICE_BYTES)
    }

    fn lock(&mut self, memory: OwnedFrames) -> Result<Slot, StageError> {
        LockedFrames::lock(memory).map(Slot::Locked).map_err(|error| match error {
            LockError::OutOfMemory => StageError::OutOfMemory("locking the image"),
            LockError::Unresponsive(cpu) => StageError::Unresponsive(cpu),
        })
    }

    fn leave_open(&mut self, memory: OwnedFrames) -> Slot {
        Slot::Open(memory)
    }
}

/// Checks that the image returns to this one where no client confirms it.
fn check_way_back(image: &Image) -> Result<(), StageError> {
    if !image.knows_deadlines() {
        return Err(StageError::KnowsNoDeadline);
    }
    files::own().map(drop).ok_or(StageError::NoWayBack)
}
