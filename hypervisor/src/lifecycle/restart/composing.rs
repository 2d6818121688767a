// SPDX-License-Identifier: MIT OR Apache-2.0
//! The configuration for the next image, where it has changed since this one has begun: a bundle, written while guests
//! run.

use bundle::{Composer, FileGone};
use units::{PageSize, PhysRange};

use super::error::StageError;
use crate::arch::memory::{FRAMES, OwnedFrames};
use crate::guests::configuration::{self, Files};

/// Bytes that are copied at a time: some tens of microseconds' worth, for which guests on this CPU wait.
const SLICE_BYTES: usize = 64 << 10;

/// A bundle that is being written.
pub struct Composition {
    composer: Composer,
    files: Files,
    frames: OwnedFrames,
    /// The change of the configuration that it has.
    change: u32,
    problem: Option<FileGone>,
}

impl Composition {
    /// Sets memory aside for the configuration, if it has changed.
    ///
    /// # Errors
    /// There is not as much.
    pub fn begin() -> Result<Option<Self>, StageError> {
        let change = configuration::changes();
        if change == 0 {
            return Ok(None);
        }
        let composer = Composer::new(&configuration::manifest().with_needed_files());
        let frames = FRAMES.lock().allocate(composer.bytes() as u64, PageSize::Kib4);
        let frames = frames.map_err(|_| StageError::OutOfMemory("the changed configuration and its files"))?;
        let (files, frames) = (Files::now(), OwnedFrames::new(frames));
        Ok(Some(Self { composer, files, frames, change, problem: None }))
    }

    /// Goes on for some microseconds; returns whether there is no more to write.
    pub fn step(&mut self) -> bool {
        let Self { composer, files, frames, problem, .. } = self;
        match composer.step(frames.bytes_mut(), SLICE_BYTES, |name| files.get(name)) {
            Ok(is_over) => is_over,
            Err(gone) => {
                *problem = Some(gone);
                true
            }
        }
    }

    /// The bundle, all of which is written.
    ///
    /// # Errors
    /// The configuration has changed meanwhile, or lacks a file.
    pub fn finish(self) -> Result<Composed, StageError> {
        if let Some(FileGone(name)) = self.problem {
            return Err(StageError::Bundle(alloc::format!("the host has no file {name}")));
        }
        if self.change != configuration::changes() {
            return Err(StageError::Guests("the configuration has changed meanwhile".into()));
        }
        Ok(Composed { bytes: self.composer.bytes() as u64, frames: self.frames })
    }
}

/// The bundle of the next image.
pub struct Composed {
    frames: OwnedFrames,
    bytes: u64,
}

impl Composed {
    /// Returns where it lies.
    pub fn range(&self) -> PhysRange {
        PhysRange::from_start(self.frames.range().start(), self.bytes).unwrap_or_default()
    }
}
