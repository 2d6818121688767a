// SPDX-License-Identifier: MIT OR Apache-2.0
//! The source of the next image: the bundle that the host runs, or a file that was sent to it.

use core::ops::Range;

use alloc::boxed::Box;
use alloc::string::ToString;

use bundle::Bundle;
use handover::layout::Purpose;
use units::PhysRange;

use super::error::StageError;
use super::upload::Upload;
use crate::guests::configuration;
use crate::kernel::inherited;

/// A file that holds an image, alone or in a bundle.
pub struct Source {
    file: File,
    /// The part of the file that is the image, its seal included.
    image: Range<usize>,
    /// The bundle of the image before, which comes back with it. In a box: errors carry the source.
    previous_bundle: Option<Box<PhysRange>>,
}

enum File {
    /// Of the host's own bundle, which is there for as long as the host runs.
    Resident(&'static [u8]),
    /// Sent to the host.
    Uploaded(Box<Upload>),
}

impl Source {
    /// The image in the host's own bundle.
    pub fn bundle() -> Result<Self, StageError> {
        let bundle = configuration::bundle().ok_or(StageError::NoBundle)?;
        let name = bundle.manifest().host.image.as_deref().ok_or(StageError::NoImage)?;
        let image = bundle.file(name).map_err(|error| StageError::Bundle(error.to_string()))?;
        Ok(Self { file: File::Resident(image), image: 0..image.len(), previous_bundle: None })
    }

    /// The image that ran before the last update, with its bundle while that update is to be confirmed. A configuration
    /// that has changed since stays.
    pub fn previous() -> Result<Self, StageError> {
        let image = inherited::file(Purpose::PreviousFile).ok_or(StageError::NoPrevious)?;
        let previous_bundle = inherited::previous_bundle().filter(|_| configuration::changes() == 0).map(Box::new);
        Ok(Self { file: File::Resident(image), image: 0..image.len(), previous_bundle })
    }

    /// An image that was sent, alone or in a bundle; the error gives the file back.
    pub fn uploaded(upload: Box<Upload>) -> Result<Self, (StageError, Box<Upload>)> {
        match image_in(&upload) {
            Ok(image) => Ok(Self { file: File::Uploaded(upload), image, previous_bundle: None }),
            Err(error) => Err((error, upload)),
        }
    }

    /// The image's file, its seal included.
    pub fn image_file(&self) -> &[u8] {
        let file = match &self.file {
            File::Resident(bytes) => bytes,
            File::Uploaded(upload) => upload.file(),
        };
        file.get(self.image.clone()).unwrap_or_default()
    }

    /// The image's file, if it is there for as long as the host runs.
    pub fn resident(&self) -> Option<&'static [u8]> {
        match &self.file {
            File::Resident(bytes) => bytes.get(self.image.clone()),
            File::Uploaded(_) => None,
        }
    }

    /// Returns what was sent, if it was.
    pub fn into_upload(self) -> Option<Box<Upload>> {
        match self.file {
            File::Resident(_) => None,
            File::Uploaded(upload) => Some(upload),
        }
    }

    /// Returns the bundle that is handed over to the next image as its own, if that is another one than this image's:
    /// one that was sent, or the one before.
    pub fn next_bundle(&self) -> Option<PhysRange> {
        match &self.file {
            File::Uploaded(upload) if upload.is_bundle() => Some(upload.range()),
            _ => self.previous_bundle.as_deref().copied(),
        }
    }
}

fn image_in(upload: &Upload) -> Result<Range<usize>, StageError> {
    let file = upload.file();
    if !upload.is_bundle() {
        return Ok(0..file.len());
    }
    upload.judge_bundle()?;
    let damaged = |error: bundle::BundleError| StageError::Bundle(error.to_string());
    let bundle = Bundle::parse(file).map_err(damaged)?;
    let image = bundle.file(bundle.manifest().host.image.as_deref().ok_or(StageError::NoImage)?).map_err(damaged)?;
    let start = image.as_ptr().addr() - file.as_ptr().addr();
    Ok(start..start + image.len())
}
