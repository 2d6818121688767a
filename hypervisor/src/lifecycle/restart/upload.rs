// SPDX-License-Identifier: MIT OR Apache-2.0
//! A file that is being sent to the host, or has been, in memory that is given back with it: an image, a bundle, or a
//! file from which guests start.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};

use bundle::{Bundle, Crc32, FileRecord};
use frames::FrameRange;
use handover::Image;
use seal::{Announced, Arrival, ArrivalError, Origin, Packed};
use units::{ByteSize, PageSize, PhysRange};
use wire::{MAX_UNPACKED_BYTES, Refusal, RefusalCode, UploadKind};

use super::error::StageError;
use super::trust;
use crate::arch::memory::{FRAMES, OwnedFrames};
use crate::arch::sha256::Engine;
use crate::arch::{cpu, timer};
use crate::guests::configuration::SentFile;
use crate::kernel::ledger::guests::FRAME_SOURCE;

/// The time after which an upload without progress is dropped.
const PATIENCE_US: u64 = 10_000_000;

/// The file.
pub struct Upload {
    arrival: Arrival<Engine, UploadKind>,
    frames: OwnedFrames,
    /// Its first bytes have been checked: its kind and its note.
    is_head_checked: bool,
    /// The checksum of a file from which guests start, as far as it is there.
    sum: Option<Crc32>,
}

impl Upload {
    /// Sets memory aside.
    ///
    /// # Errors
    /// There is not as much.
    pub fn begin(announced: Announced<UploadKind>) -> Result<Self, Refusal> {
        let bytes = announced.bytes;
        if bytes == 0 {
            return Err(refusal(RefusalCode::Invalid, "the file is empty".into(), "send a bundle or an image"));
        }
        let frames = if announced.kind == UploadKind::Memory { memory(bytes) } else { file_memory(bytes) }?;
        let patience = timer::us_to_ticks(PATIENCE_US);
        let sum = (announced.kind == UploadKind::File).then(Crc32::new);
        let arrival = Arrival::new(Engine::best(), announced, cpu::tsc(), patience);
        // Nothing is known of a guest's memory.
        let is_head_checked = announced.kind == UploadKind::Memory;
        Ok(Self { arrival, frames, is_head_checked, sum })
    }

    /// Returns whether this is what is being sent.
    pub fn is(&self, announced: &Announced<UploadKind>) -> bool {
        self.arrival.announced() == *announced
    }

    /// Returns whether it is a bundle rather than an image.
    pub fn is_bundle(&self) -> bool {
        self.arrival.announced().kind == UploadKind::Bundle
    }

    /// Returns how much of it is there. The request keeps the upload from being dropped.
    pub fn next_offset(&mut self) -> u64 {
        self.arrival.touch(cpu::tsc());
        self.arrival.next_offset()
    }

    /// Takes a piece, if it is the next one; returns where to go on.
    ///
    /// # Errors
    /// The file differs from the announcement: it is to be dropped.
    pub fn take(&mut self, offset: u64, piece: &[u8]) -> Result<u64, Refusal> {
        let before = self.arrival.next_offset();
        let taken = self.arrival.take(offset, piece, self.frames.bytes_mut(), cpu::tsc());
        self.note_piece(before, taken)
    }

    /// Takes a packed piece, if it is the next one; returns where to go on.
    ///
    /// # Errors
    /// The file differs from the announcement, or the piece is longer than a turn of the guests may wait for.
    pub fn take_packed(&mut self, piece: Packed<'_>) -> Result<u64, Refusal> {
        if piece.bytes > MAX_UNPACKED_BYTES.into() {
            let reason = format!("a packed piece of {} bytes is too long", piece.bytes);
            return Err(refusal(RefusalCode::Invalid, reason, "send smaller pieces"));
        }
        let before = self.arrival.next_offset();
        let taken = self.arrival.take_packed(piece, self.frames.bytes_mut(), cpu::tsc());
        self.note_piece(before, taken)
    }

    /// A piece was taken, after `before` bytes: checks the file's head as soon as that is there. Returns where to go
    /// on.
    fn note_piece(&mut self, before: u64, taken: Result<u64, ArrivalError>) -> Result<u64, Refusal> {
        let next =
            taken.map_err(|error| refusal(RefusalCode::Invalid, error.to_string(), "send it again from its start"))?;
        if let (Some(sum), Some(piece)) = (&mut self.sum, self.frames.bytes().get(before as usize..next as usize)) {
            sum.add(piece);
        } else if !self.is_head_checked {
            self.is_head_checked = self.check_head().map_err(|error| error.refusal())?;
        }
        Ok(next)
    }

    /// Checks what the bytes that are there show of the file, so that one that cannot be used is refused before the
    /// rest of it arrives; returns whether nothing of it is left to check.
    fn check_head(&self) -> Result<bool, StageError> {
        if self.is_bundle() {
            Bundle::check_head(self.file()).map_err(|error| StageError::Bundle(error.to_string()))?;
            return Ok(true);
        }
        let image = Image::describe_head(self.file(), self.arrival.announced().bytes).map_err(StageError::Image)?;
        image.map_or(Ok(false), |image| trust::check_early(&image).map(|()| true))
    }

    /// Judges the bundle, all of which is there, by the seal behind it.
    pub fn judge_bundle(&self) -> Result<(), StageError> {
        let digest = self.arrival.content_digest().copied().unwrap_or_default();
        let origin = seal::judge_bundle(self.file(), |_| digest, trust::trust()).map_err(StageError::BundleSeal)?;
        if let Origin::Signed(key) = origin {
            log::info!("bundle: whole, signed by {}", key.id());
        }
        Ok(())
    }

    /// Returns it as a file from which guests start, if it is one and all there.
    ///
    /// # Errors
    /// It is not.
    pub fn into_file(self: Box<Self>) -> Result<SentFile, Box<Self>> {
        if !self.is_whole() || self.sum.is_none() {
            return Err(self);
        }
        let Announced { bytes, digest, .. } = self.arrival.announced();
        let crc32 = self.sum.as_ref().map_or(0, Crc32::value);
        let record = FileRecord { name: name_of(&digest), bytes, crc32 };
        Ok(SentFile { record, frames: self.frames })
    }

    /// Returns whether it is a piece of a guest's memory.
    pub fn is_memory(&self) -> bool {
        self.arrival.announced().kind == UploadKind::Memory
    }

    /// Returns its SHA-256 as it was announced.
    pub fn digest(&self) -> [u8; 32] {
        self.arrival.announced().digest
    }

    /// Returns its length as it was announced.
    pub fn bytes(&self) -> u64 {
        self.arrival.announced().bytes
    }

    /// Returns the frames that it fills, for a guest whose memory they are from here on.
    pub fn into_frames(self) -> Option<FrameRange> {
        self.frames.into_frames()
    }

    /// Returns whether all of it is there, as it was announced.
    pub fn is_whole(&self) -> bool {
        self.arrival.is_whole()
    }

    /// Returns when it is dropped unless a piece comes.
    pub fn abandoned_at(&self) -> u64 {
        self.arrival.abandoned_at()
    }

    /// Returns what is there.
    pub fn file(&self) -> &[u8] {
        self.frames.bytes().get(..self.arrival.next_offset() as usize).unwrap_or_default()
    }

    /// Returns where it lies.
    pub fn range(&self) -> PhysRange {
        PhysRange::from_start(self.frames.range().start(), self.arrival.announced().bytes).unwrap_or_default()
    }
}

/// The name of a file from which guests start: the digits of its SHA-256.
pub fn name_of(digest: &[u8; 32]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn file_memory(bytes: u64) -> Result<OwnedFrames, Refusal> {
    let frames = FRAMES.lock().allocate_for_file(bytes, PageSize::Kib4);
    // The lock is free again: how much there is will be reported.
    frames.map(OwnedFrames::new).map_err(|_| too_large(bytes))
}

/// Memory that is to be a guest's, which the file fills.
fn memory(bytes: u64) -> Result<OwnedFrames, Refusal> {
    if !bytes.is_multiple_of(PageSize::Mib2.bytes()) {
        let reason = format!("{bytes} bytes are no guest's memory");
        return Err(refusal(RefusalCode::Invalid, reason, "send whole pieces of it, each a multiple of 2 MiB"));
    }
    let frames = (FRAME_SOURCE.allocate)(bytes, None).map_err(|_| too_large(bytes))?;
    Ok(OwnedFrames::released_by(frames.range, FRAME_SOURCE.release))
}

fn too_large(bytes: u64) -> Refusal {
    let largest = FRAMES.lock().largest_extent().map_or(0, |extent| extent.bytes());
    let reason = format!("the file has {}, and the host {} in one piece", ByteSize(bytes), ByteSize(largest));
    refusal(RefusalCode::Exhausted, reason, "stop a guest, or give the host more memory")
}

fn refusal(code: RefusalCode, reason: String, hint: &str) -> Refusal {
    Refusal { code, reason, hint: hint.into() }
}
