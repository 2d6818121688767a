// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is left once the image in its slot is trusted, still while guests run: the crossing is built, memory for the
//! record is set aside, and the record is written once to see that it fits.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use ::update::platform::Cpu;
use handover::layout::{ProcessorState, Reason, Stamps};
use handover::{ImageError, MAX_RECORD_BYTES};
use seal::{Downgrade, SealError};
use units::{PageSize, PhysAddr};
use wire::{Refusal, RefusalCode};
use zerocopy::FromZeros as _;

use super::candidate::{Hashed, Trusted};
use super::files::Files;
use super::record::write_record;
use super::source::Source;
use super::{Conversation, inherited};
use crate::arch::address::BOOT_MAPPED_BYTES;
use crate::arch::boot;
use crate::arch::crossing::Crossing;
use crate::arch::heap::HEAP_BYTES;
use crate::arch::memory::{self, OwnedFrames};
use crate::guest::GUESTS;
use crate::kernel::ledger::retired;
use crate::processors;
use crate::update::Baggage;

/// One processor of this image as the restart sees it.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// Its number.
    pub index: u32,
    /// Its identifier.
    pub apic_id: u32,
    /// Where it will have been left.
    pub state: ProcessorState,
}

impl Member {
    /// Its names.
    pub fn cpu(&self) -> Cpu {
        Cpu { index: self.index, apic_id: self.apic_id }
    }
}

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

/// Why there can be no restart.
#[derive(Clone, Debug)]
pub enum StageError {
    /// The host has no bundle.
    NoBundle,
    /// The bundle has no image.
    NoImage,
    /// The image before has left no file.
    NoPrevious,
    /// The bundle is damaged.
    Bundle(String),
    /// The image cannot be used.
    Image(ImageError),
    /// The image is not trusted.
    Seal(SealError),
    /// The bundle is not trusted.
    BundleSeal(SealError),
    /// The image is older than this host admits.
    Downgrade(Downgrade),
    /// A guest cannot go over.
    Guests(String),
    /// This processor is unresponsive.
    Deaf(u32),
    /// There is no memory for it.
    OutOfMemory(&'static str),
}

impl StageError {
    /// For programs.
    fn code(&self) -> RefusalCode {
        match self {
            Self::OutOfMemory(_) => RefusalCode::Exhausted,
            Self::Guests(_) => RefusalCode::WrongState,
            Self::Deaf(_) => RefusalCode::Failed,
            _ => RefusalCode::Invalid,
        }
    }

    /// For the client.
    pub fn refusal(&self) -> Refusal {
        let reason = self.to_string();
        let reason = wire::bounded(&reason, wire::MAX_REASON_BYTES).to_string();
        Refusal { code: self.code(), reason, mend: self.mend().into() }
    }

    /// What to do about it.
    fn mend(&self) -> &'static str {
        match self {
            Self::NoBundle => "give the host a bundle",
            Self::NoImage => "build the bundle with an image ([host] image in host.toml)",
            Self::NoPrevious => "send an image: `baton update --image FILE`",
            Self::Bundle(_) => "make the bundle again with `baton bundle`",
            Self::Image(_) => "use an image of this host's release",
            Self::Seal(error) => error.mend(),
            Self::BundleSeal(error) => error.mend_of_bundle(),
            Self::Downgrade(downgrade) => downgrade.mend(),
            Self::Guests(_) => "try again in a moment, or stop that guest",
            Self::Deaf(_) => "try again in a moment; `baton cpu list` shows the processors",
            Self::OutOfMemory(_) => "stop a guest, or give the host more memory",
        }
    }
}

impl fmt::Display for StageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoBundle => f.write_str("the host has no bundle to restart from"),
            Self::NoImage => f.write_str("the bundle holds no image to restart with"),
            Self::NoPrevious => {
                f.write_str("there is no image to go back to: none was updated from, or it left no file")
            }
            Self::Bundle(problem) => f.write_str(problem),
            Self::Image(error) => write!(f, "the image cannot be used: {error}"),
            Self::Seal(error) => write!(f, "the image is not trusted: {error}"),
            Self::BundleSeal(error) => write!(f, "the bundle is not trusted: {error}"),
            Self::Downgrade(downgrade) => write!(f, "the image is too old: {downgrade}"),
            Self::Guests(problem) => f.write_str(problem),
            Self::Deaf(processor) => write!(f, "processor {processor} is unresponsive"),
            Self::OutOfMemory(what) => write!(f, "no memory in one piece below 4 GiB for {what}"),
        }
    }
}

/// Prepares a restart or an update with an image that may run; the error gives its file back. `pack` packs what goes
/// over of guests, for a reader of this version.
pub fn stage(
    next: Box<Trusted>,
    source: Source,
    reason: Reason,
    pack: impl FnOnce(u32) -> Result<Baggage, String>,
) -> Result<Staged, (StageError, Source)> {
    let members = processors::members();
    let Some(version) = next.image.version_to_write(boot::newest_version()) else {
        let note = next.image.note();
        let error = ImageError::OtherVersions { oldest: note.oldest.get(), newest: note.newest.get() };
        return Err((StageError::Image(error), source));
    };
    retired::warn_if_forgotten(version);
    let goods = gather(&source, reason, members.len() as u64, || pack(version));
    let (record, advance, files, baggage) = match goods {
        Ok(goods) => goods,
        Err(error) => return Err((error, source)),
    };
    let generation = inherited::generation() + 1;
    let mut parcel = Box::new(Parcel {
        generation,
        next,
        source,
        record,
        version,
        advance,
        files,
        baggage: Arc::new(baggage),
        members,
    });
    match build_crossing(&mut parcel, reason) {
        Ok(crossing) => Ok(Staged { parcel, crossing }),
        Err(error) => Err((error, parcel.source)),
    }
}

/// Memory for the record, the advance, files, and what goes over of guests.
type Goods = (OwnedFrames, Option<OwnedFrames>, Option<Files>, Baggage);

fn gather(
    source: &Source,
    reason: Reason,
    processors: u64,
    pack: impl FnOnce() -> Result<Baggage, String>,
) -> Result<Goods, StageError> {
    let record = allocate(MAX_RECORD_BYTES as u64, PageSize::Kib4, "the hand-over record")?;
    let is_update = reason == Reason::Update;
    let advance = if is_update { Some(advance(processors)?) } else { None };
    let files = if is_update {
        Some(Files::of(source.image_file()).ok_or(StageError::OutOfMemory("the image's file"))?)
    } else {
        None
    };
    let baggage = pack().map_err(StageError::Guests)?;
    Ok((record, advance, files, baggage))
}

/// What a new image needs for itself: tables, heap, stacks, and its side of each guest.
fn advance(processors: u64) -> Result<OwnedFrames, StageError> {
    const BASE_BYTES: u64 = 2 << 20;
    const PROCESSOR_BYTES: u64 = 128 << 10;
    const VCPU_BYTES: u64 = 32 << 10;
    const GUEST_BYTES: u64 = 64 << 10;
    let guests = GUESTS.get().map_or(&[][..], |guests| &guests.all);
    let vcpus: u64 = guests.iter().map(|guest| u64::from(guest.config.vcpus)).sum();
    let guests = guests.len() as u64;
    let parts = [HEAP_BYTES, BASE_BYTES, processors * PROCESSOR_BYTES, vcpus * VCPU_BYTES, guests * GUEST_BYTES];
    allocate(parts.iter().sum(), PageSize::Mib2, "the new image's own data")
}

fn build_crossing(parcel: &mut Parcel, reason: Reason) -> Result<Crossing, StageError> {
    let mailboxes = parcel.members.iter().map(|member| member.index as usize + 1).max().unwrap_or(1);
    let slot = parcel.next.slot.range();
    let crossing = Crossing::build(mailboxes, slot).map_err(|_| StageError::OutOfMemory("the crossing"))?;
    let (stamps, conversation) = (Stamps::new_zeroed(), Conversation::default());
    let no_room = StageError::OutOfMemory("a record of this host");
    let Ok(bytes) = write_record(parcel, &crossing, reason, &stamps, Hashed::default(), &conversation) else {
        return Err(no_room);
    };
    // More memory may be found damaged until a restart writes the record again.
    if bytes + retired::MAX_GROWTH_BYTES > MAX_RECORD_BYTES {
        return Err(no_room);
    }
    crossing.enter_host_tables().map_err(|_| StageError::OutOfMemory("the crossing's page tables"))?;
    Ok(crossing)
}

fn allocate(bytes: u64, alignment: PageSize, what: &'static str) -> Result<OwnedFrames, StageError> {
    let frames = memory::FRAMES.lock().allocate_below(bytes, alignment, PhysAddr(BOOT_MAPPED_BYTES));
    frames.map(OwnedFrames::new).map_err(|_| StageError::OutOfMemory(what))
}
