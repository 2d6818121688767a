// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replacing the running image by another, without firmware: the one in the host's bundle, or one that was sent.
//!
//! ```text
//! prepare (guests run; may fail, and nothing has changed)        go (bounded, no way back)
//!   image copied and hashed in slices, judged;
//!   switch pages built, record fits                            ─▶  others park ─▶ log, record ─▶ by the switch pages
//!                                                                                              │
//! new image: record ─▶ memory, clock, log ─▶ the boot's usual way, CPUs from their mailboxes ─▶ guests again
//! ```
//!
//! | module | content |
//! |---|---|
//! | [`source`], [`upload`] | the file with the next image |
//! | [`files`] | files of this image and the one before, to go back to |
//! | [`trust`] | images and bundles that this host accepts |
//! | [`image_copy`] | the image on its way into its slot, and its lock |
//! | [`staged_image`] | the image in its slot: hashed, judged |
//! | [`staging`] | other parts that can be prepared and refused while guests run |
//! | [`hand_over`] | all state that is handed over, and the way there |
//! | [`composing`] | the configuration, where it has changed |
//! | [`error`] | reasons why the image cannot be replaced |
//! | [`record`] | the record for the new image |
//! | [`leaving`] | from the first stop of a guest to the last instruction of this image |
//! | [`successor`] | the other side: events, logs and memory of the image before |
//!
//! A live update ([`crate::lifecycle::update`]) stages in the same way, and hands the guests over.

mod composing;
mod error;
mod files;
pub mod hand_over;
mod image_copy;
pub mod leaving;
mod record;
pub mod source;
pub mod staged_image;
pub mod staging;
pub mod successor;
pub mod terms;
pub mod trust;
pub mod upload;

use alloc::boxed::Box;

use handover::layout::Reason;
use wire::Refusal;

use crate::arch::cpu;
use crate::kernel::inherited::{self, ChannelState};
use crate::kernel::platform::options;
use crate::kernel::timeline::{self, Name};
use crate::lifecycle::update::hand_over_state::HandOverState;

use composing::Composition;
use error::StageError;
use files::FileCopies;
use hand_over::Staged;
use image_copy::{ImageCopy, Placement};
pub use leaving::{is_parking, park};
use source::Source;
use staging::{NO_ROOM_FOR_FILES, Pack};
use terms::Terms;

/// A restart or an update that is being prepared, while guests run. Dropped, it gives everything back.
pub struct Preparation {
    source: Source,
    image: Placement,
    /// In an update.
    files: Option<FileCopies>,
    composition: Option<Composition>,
    reason: Reason,
    terms: Terms,
    asked: u64,
}

/// A restart that there cannot be; nothing has changed.
pub struct Refused {
    /// The reason.
    pub refusal: Refusal,
    /// The file that was to replace the image.
    pub source: Option<Source>,
}

/// A restart that is ready to go.
pub struct Restart {
    staged: Staged,
    reason: Reason,
    asked: u64,
}

impl Preparation {
    /// Begins: there is memory for the image, and the host may run it.
    ///
    /// # Errors
    /// The reason why there cannot be a restart.
    pub fn begin(source: Source, reason: Reason, terms: Terms) -> Result<Self, Refused> {
        let asked = cpu::tsc();
        let _span = timeline::span(Name::Stage, inherited::generation() as u32 + 1);
        match begin(&source, reason, terms) {
            Ok((image, composition, files)) => {
                let image = Placement::Copying(image);
                Ok(Self { source, image, files, composition, reason, terms, asked })
            }
            Err(error) => Err(Refused { refusal: error.refusal(), source: Some(source) }),
        }
    }

    /// Goes on for some microseconds; returns whether only [`Self::finish`] is left to do.
    pub fn step(&mut self) -> bool {
        let file = self.source.image_file();
        self.image.step(file)
            && self.files.as_mut().is_none_or(|files| files.step(file))
            && self.composition.as_mut().is_none_or(Composition::step)
    }

    /// Prepares what is left of a restart.
    ///
    /// # Errors
    /// The reason why there cannot be a restart.
    pub fn finish(self) -> Result<Restart, Refused> {
        let reason = self.reason;
        let (staged, asked) = self.stage(|_| HandOverState::of_the_host())?;
        Ok(Restart { staged, reason, asked })
    }

    /// Prepares what is left; returns when all this was asked for, too. `pack` packs the hand-over state, for a reader
    /// of this version.
    ///
    /// # Errors
    /// The reason why there can be no switch to the image.
    pub fn stage(self, pack: Pack) -> Result<(Staged, u64), Refused> {
        let Self { source, image, files, composition, reason, terms, asked } = self;
        let _span = timeline::span(Name::Stage, inherited::generation() as u32 + 1);
        let ready = composition.map(Composition::finish).transpose();
        let ready = ready.and_then(|bundle| Ok((bundle, image.finish(source.image_file())?)));
        let (bundle, image) = match ready {
            Ok(ready) => ready,
            Err(error) => return Err(Refused { refusal: error.refusal(), source: Some(source) }),
        };
        let files = files.map(|files| files.finish(source.image_file()));
        match staging::stage(image, (source, bundle, files), reason, terms.confirm_within_s, pack) {
            Ok(staged) => Ok((staged, asked)),
            Err((error, source)) => Err(Refused { refusal: error.refusal(), source: Some(source) }),
        }
    }

    /// Gives it up.
    pub fn refuse(self, refusal: Refusal) -> Refused {
        Refused { refusal, source: Some(self.source) }
    }
}

/// The parts of a preparation that begins.
type Begun = (Box<ImageCopy>, Option<Composition>, Option<FileCopies>);

fn begin(source: &Source, reason: Reason, terms: Terms) -> Result<Begun, StageError> {
    let image = ImageCopy::begin(source.image_file(), terms)?;
    let files = match reason {
        Reason::Update => Some(FileCopies::begin(source.image_file()).ok_or(NO_ROOM_FOR_FILES)?),
        _ => None,
    };
    // A bundle that was sent is the configuration.
    let composition = if source.next_bundle().is_some() { None } else { Composition::begin()? };
    Ok((image, composition, files))
}

impl Restart {
    /// Returns how many images will have run.
    pub fn generation(&self) -> u64 {
        self.staged.hand_over.generation
    }

    /// Switches to the new image. Guests end where they are; `last_words` sends their remaining output, and returns the
    /// control channel's state.
    pub fn go(self, last_words: &mut dyn FnMut() -> ChannelState) -> ! {
        leaving::leave(self.staged, self.reason, self.asked, last_words)
    }
}

/// Returns a restart, if no guest is left running and the operator wants another generation; none if it is refused.
pub fn after_guests() -> Option<Restart> {
    let wanted = options().map_or(1, |options| options.restart_after_guests);
    if inherited::generation() >= wanted {
        return None;
    }
    let restart = Source::bundle().map_err(|error| error.refusal()).and_then(|source| {
        let mut preparation =
            Preparation::begin(source, Reason::GuestsDone, Terms::default()).map_err(|refused| refused.refusal)?;
        while !preparation.step() {}
        preparation.finish().map_err(|refused| refused.refusal)
    });
    restart.inspect_err(|refusal| log::error!("restart refused: {refusal}")).ok()
}
