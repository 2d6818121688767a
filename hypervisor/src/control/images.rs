// SPDX-License-Identifier: MIT OR Apache-2.0
//! Images that are to replace the running one: files that are sent, and images that are checked for a restart or an
//! update. Both take their time in small pieces, between which guests run.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use frames::FrameRange;
use handover::layout::Reason;
use seal::{Announced, Packed};
use wire::{Refusal, RefusalCode, ReplyBody, UpdateBy, UploadKind};

use super::guest_lines::Asked;
use crate::arch::{cpu, timer};
use crate::guests::configuration;
use crate::lifecycle::restart::source::Source;
use crate::lifecycle::restart::terms::Terms;
use crate::lifecycle::restart::trust;
use crate::lifecycle::restart::upload::{Upload, name_of};
use crate::lifecycle::restart::{Preparation, Refused, Restart};

/// The pieces of memory that one guest has at most.
const MOST_PIECES: usize = 2;
/// One that is there waits so long for the next: the client reads that from a disk, and checks it.
const MEMORY_PATIENCE_US: u64 = 300_000_000;
/// The operator's wish for an older image holds for so long.
const PERMIT_US: u64 = 10_000_000;

/// The orders for images that are under way.
#[derive(Default)]
pub struct ImageOrders {
    upload: Option<Box<Upload>>,
    /// Pieces of memory that are there, of a guest that is to go on.
    memory: Vec<Box<Upload>>,
    /// The time at which they are dropped.
    memory_until: u64,
    job: Option<Job>,
    /// The time until which the next order may go to an older image, in ticks.
    downgrade_until: Option<u64>,
}

/// The purpose of an image.
#[derive(Clone, Copy)]
pub enum Wanted {
    /// Guests start again.
    Restart,
    /// Guests go on.
    Update {
        /// Nothing is to be replaced.
        is_dry_run: bool,
        /// Seconds within which a client is to confirm it.
        confirm_within_s: Option<u32>,
    },
}

/// The request that is answered, or `None` where the host itself wants to return to the image before.
pub type Requester = Option<Asked>;

/// An image that is being checked.
struct Job {
    requester: Requester,
    wanted: Wanted,
    preparation: Preparation,
    /// The time at which its next slice is due.
    due: u64,
}

/// The outcome of the check of an image.
pub enum Outcome {
    /// A restart is ready to go.
    Ready(Requester, Box<Restart>),
    /// An update may begin, or be tried.
    Checked(Requester, bool, Box<Preparation>),
    /// It was refused.
    Refused(Requester, Refusal),
}

impl ImageOrders {
    /// A file is about to be sent, or to be gone on with.
    pub fn begin_upload(&mut self, announced: Announced<UploadKind>) -> Result<ReplyBody, Refusal> {
        match &mut self.upload {
            Some(upload) if upload.is(&announced) => {
                return Ok(ReplyBody::Received { next_offset: upload.next_offset() });
            }
            Some(upload) if !upload.is_whole() => {
                return Err(wrong_state(
                    "another file is being sent",
                    "wait until it is there, or was abandoned for ten seconds",
                ));
            }
            _ => {}
        }
        if self.job.is_some() {
            return Err(is_preparing());
        }
        let name = name_of(&announced.digest);
        if announced.kind == UploadKind::File && (configuration::was_sent(&name) || configuration::is_bundled(&name)) {
            return Ok(ReplyBody::Received { next_offset: announced.bytes });
        }
        if announced.kind == UploadKind::Memory && self.memory.iter().any(|piece| piece.is(&announced)) {
            return Ok(ReplyBody::Received { next_offset: announced.bytes });
        }
        self.upload = None;
        self.upload = Some(Box::new(Upload::begin(announced)?));
        log::info!("upload: {} of {:?} are being sent", units::ByteSize(announced.bytes), announced.kind);
        Ok(ReplyBody::Received { next_offset: 0 })
    }

    /// A piece of the file.
    pub fn take(&mut self, offset: u64, piece: &[u8]) -> Result<ReplyBody, Refusal> {
        self.take_by(|upload| upload.take(offset, piece))
    }

    /// A piece of the file, packed.
    pub fn take_packed(&mut self, piece: Packed<'_>) -> Result<ReplyBody, Refusal> {
        self.take_by(|upload| upload.take_packed(piece))
    }

    fn take_by(&mut self, take: impl FnOnce(&mut Upload) -> Result<u64, Refusal>) -> Result<ReplyBody, Refusal> {
        let Some(upload) = &mut self.upload else {
            return Err(wrong_state("no file is being sent, or it was abandoned", "send it from its start"));
        };
        let next_offset = take(upload).inspect_err(|_| self.upload = None)?;
        self.hold_memory();
        match self.upload.take().map(Upload::into_file) {
            Some(Ok(file)) => configuration::keep(file),
            Some(Err(upload)) if upload.is_memory() && upload.is_whole() => self.keep_memory(upload),
            Some(Err(upload)) => self.upload = Some(upload),
            None => {}
        }
        Ok(ReplyBody::Received { next_offset })
    }

    /// As long as more of a guest comes, nothing of it is abandoned.
    fn hold_memory(&mut self) {
        self.memory_until = cpu::tsc().saturating_add(timer::us_to_ticks(MEMORY_PATIENCE_US));
    }

    fn keep_memory(&mut self, piece: Box<Upload>) {
        if self.memory.len() == MOST_PIECES {
            self.memory.remove(0);
        }
        self.memory.push(piece);
    }

    /// Takes the pieces of memory of these digests and sizes, in this order.
    ///
    /// # Errors
    /// One is not there; all others still are.
    pub fn take_memory(&mut self, wanted: &[([u8; 32], u64)]) -> Result<Vec<FrameRange>, Refusal> {
        let place = |(digest, bytes): &([u8; 32], u64)| {
            self.memory.iter().position(|piece| piece.digest() == *digest && piece.bytes() == *bytes)
        };
        let places: Option<Vec<usize>> = wanted.iter().map(place).collect();
        let is_all_there = places.is_some_and(|places| (1..places.len()).all(|at| !places[..at].contains(&places[at])));
        if !is_all_there {
            return Err(wrong_state("its memory is not there, or was abandoned", "send it again"));
        }
        let mut frames = Vec::new();
        for (digest, _) in wanted {
            let at = self.memory.iter().position(|piece| piece.digest() == *digest);
            frames.extend(at.and_then(|at| self.memory.remove(at).into_frames()));
        }
        Ok(frames)
    }

    /// The file is not wanted any more.
    pub fn drop_upload(&mut self) -> ReplyBody {
        self.upload = None;
        ReplyBody::Done
    }

    /// The next order may go to an older image, if the host's policy permits that.
    pub fn permit_downgrade(&mut self) -> Result<ReplyBody, Refusal> {
        if let Err(downgrade) = trust::floor().admit_if_asked(0) {
            let reason = String::from("this host permits no downgrade");
            return Err(Refusal { code: RefusalCode::Invalid, reason, hint: downgrade.hint().into() });
        }
        self.downgrade_until = Some(cpu::tsc().saturating_add(timer::us_to_ticks(PERMIT_US)));
        Ok(ReplyBody::Done)
    }

    /// Returns whether an image is being checked.
    pub fn is_checking(&self) -> bool {
        self.job.is_some()
    }

    /// Returns whether a file is being sent.
    pub fn is_receiving(&self) -> bool {
        self.upload.as_ref().is_some_and(|upload| !upload.is_whole())
    }

    /// Returns whether a file is being sent, or is there.
    pub fn has_file(&self) -> bool {
        self.upload.is_some()
    }

    /// Begins to prepare a restart or an update, with the host's own bundle, the file that was sent, or the image
    /// before.
    pub fn begin(&mut self, requester: Requester, by: UpdateBy, wanted: Wanted) -> Result<(), Refusal> {
        if self.job.is_some() {
            return Err(is_preparing());
        }
        let is_permitted = self.downgrade_until.take().is_some_and(|until| cpu::tsc() <= until);
        // To go back to the image before is to ask for an older one.
        let is_downgrade = is_permitted || by == UpdateBy::Previous;
        let source = match by {
            UpdateBy::Bundle => Source::bundle().map_err(|error| error.refusal())?,
            UpdateBy::Upload => self.uploaded()?,
            UpdateBy::Previous => Source::previous().map_err(|error| error.refusal())?,
        };
        let (reason, confirm_within_s) = match wanted {
            Wanted::Restart => (Reason::Asked, None),
            Wanted::Update { confirm_within_s, .. } => (Reason::Update, confirm_within_s),
        };
        let terms = Terms { is_downgrade, is_return: requester.is_none(), confirm_within_s };
        match Preparation::begin(source, reason, terms) {
            Ok(preparation) => {
                self.job = Some(Job { requester, wanted, preparation, due: cpu::tsc() });
                Ok(())
            }
            Err(refused) => Err(self.keep(refused)),
        }
    }

    /// Goes on with what is due.
    pub fn poll(&mut self) -> Option<Outcome> {
        let now = cpu::tsc();
        if self.upload.as_ref().is_some_and(|upload| upload.abandoned_at() <= now) {
            log::warn!("upload: no more of it came for 10 s; it is dropped");
            self.upload = None;
        }
        if self.memory_until <= now {
            self.memory.clear();
        }
        let job = self.job.as_mut().filter(|job| job.due <= now)?;
        if !job.preparation.step() {
            let after = cpu::tsc();
            // This CPU's guests run for as long as the slice took.
            job.due = after.saturating_add(after.wrapping_sub(now));
            return None;
        }
        let Job { requester, wanted, preparation, .. } = self.job.take()?;
        if let Wanted::Update { is_dry_run, .. } = wanted {
            return Some(Outcome::Checked(requester, is_dry_run, Box::new(preparation)));
        }
        Some(match preparation.finish() {
            Ok(restart) => Outcome::Ready(requester, Box::new(restart)),
            Err(refused) => Outcome::Refused(requester, self.keep(refused)),
        })
    }

    /// Returns when to check although nothing has come.
    pub fn alarm(&self) -> Option<u64> {
        let job = self.job.as_ref().map(|job| job.due);
        let sent = self.upload.as_ref().map(|upload| upload.abandoned_at());
        let memory = (!self.memory.is_empty()).then_some(self.memory_until);
        job.into_iter().chain(sent).chain(memory).min()
    }

    fn uploaded(&mut self) -> Result<Source, Refusal> {
        let upload = self.upload.take_if(|upload| upload.is_whole()).ok_or_else(|| match &self.upload {
            Some(_) => wrong_state("the file is not all there", "send the rest of it first"),
            None => wrong_state("no file was sent, or it was abandoned", "send one first: `baton restart BUNDLE`"),
        })?;
        Source::uploaded(upload).map_err(|(error, upload)| {
            self.upload = Some(upload);
            error.refusal()
        })
    }

    /// A file that was sent is kept for another try.
    pub fn keep(&mut self, refused: Refused) -> Refusal {
        self.upload = refused.source.and_then(Source::into_upload);
        if let Some(upload) = &mut self.upload {
            upload.next_offset();
        }
        refused.refusal
    }
}

fn is_preparing() -> Refusal {
    wrong_state("another image is being checked", "wait for it")
}

fn wrong_state(reason: &str, hint: &str) -> Refusal {
    Refusal { code: RefusalCode::WrongState, reason: String::from(reason), hint: String::from(hint) }
}
