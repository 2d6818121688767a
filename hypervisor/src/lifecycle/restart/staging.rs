// SPDX-License-Identifier: MIT OR Apache-2.0
//! The steps after the image in its slot is trusted, still while guests run: the switch pages are built, memory for
//! the record is set aside, and the record is written once to see that it fits.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use handover::layout::{Reason, Stamps};
use handover::{ImageError, MAX_RECORD_BYTES};
use seal::{Downgrade, SealError};
use units::{PageSize, PhysAddr};
use wire::{Refusal, RefusalCode};
use zerocopy::FromZeros as _;

use super::files::Files;
use super::record::write_record;
use super::source::Source;
use super::staged_image::{Hashed, Trusted};
use crate::arch::address::BOOT_MAPPED_BYTES;
use crate::arch::boot;
use crate::arch::heap::HEAP_BYTES;
use crate::arch::memory::{self, OwnedFrames};
use crate::arch::switch_pages::SwitchPages;
use crate::guests::guest::GUESTS;
use crate::kernel::cpus::{self, Member};
use crate::kernel::inherited::{self, Conversation};
use crate::kernel::ledger::retired;
use crate::lifecycle::update::HandOverState;

/// A restart that only has to be gone through with. Dropped, it gives everything back.
pub struct Staged {
    /// The hand-over.
    pub hand_over: Box<HandOver>,
    /// The way.
    pub switch_pages: SwitchPages,
}

/// The hand-over to the new image.
pub struct HandOver {
    /// The number of images that will have run.
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
    pub staging_memory: Option<OwnedFrames>,
    /// In an update, the files of the new image and of this one, as far as there is one.
    pub files: Option<Files>,
    /// The hand-over state of the host and, in an update, of guests.
    pub hand_over_state: Arc<HandOverState>,
    /// Every CPU that takes part, this one first.
    pub members: Vec<Member>,
}

/// The reason for which there can be no restart.
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
    /// A guest cannot be handed over.
    Guests(String),
    /// This CPU is unresponsive.
    Unresponsive(u32),
    /// There is no memory for it.
    OutOfMemory(&'static str),
}

impl StageError {
    /// For programs.
    fn code(&self) -> RefusalCode {
        match self {
            Self::OutOfMemory(_) => RefusalCode::Exhausted,
            Self::Guests(_) => RefusalCode::WrongState,
            Self::Unresponsive(_) => RefusalCode::Failed,
            _ => RefusalCode::Invalid,
        }
    }

    /// For the client.
    pub fn refusal(&self) -> Refusal {
        let reason = self.to_string();
        let reason = wire::bounded(&reason, wire::MAX_REASON_BYTES).to_string();
        Refusal { code: self.code(), reason, hint: self.hint().into() }
    }

    /// Returns what to do about it.
    fn hint(&self) -> &'static str {
        match self {
            Self::NoBundle => "give the host a bundle",
            Self::NoImage => "build the bundle with an image ([host] image in host.toml)",
            Self::NoPrevious => "send an image: `baton update --image FILE`",
            Self::Bundle(_) => "make the bundle again with `baton bundle`",
            Self::Image(_) => "use an image of this host's release",
            Self::Seal(error) => error.hint(),
            Self::BundleSeal(error) => error.hint_of_bundle(),
            Self::Downgrade(downgrade) => downgrade.hint(),
            Self::Guests(_) => "try again in a moment, or stop that guest",
            Self::Unresponsive(_) => "try again in a moment; `baton cpu list` shows the CPUs",
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
            Self::Unresponsive(cpu) => write!(f, "CPU {cpu} is unresponsive"),
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
    pack: impl FnOnce(u32) -> Result<HandOverState, String>,
) -> Result<Staged, (StageError, Source)> {
    let members = cpus::members();
    let Some(version) = next.image.version_to_write(boot::newest_version()) else {
        let note = next.image.note();
        let error = ImageError::OtherVersions { oldest: note.oldest.get(), newest: note.newest.get() };
        return Err((StageError::Image(error), source));
    };
    retired::warn_if_forgotten(version);
    let goods = gather(&source, reason, members.len() as u64, || pack(version));
    let (record, staging_memory, files, hand_over_state) = match goods {
        Ok(goods) => goods,
        Err(error) => return Err((error, source)),
    };
    let generation = inherited::generation() + 1;
    let mut hand_over = Box::new(HandOver {
        generation,
        next,
        source,
        record,
        version,
        staging_memory,
        files,
        hand_over_state: Arc::new(hand_over_state),
        members,
    });
    match build_switch_pages(&mut hand_over, reason) {
        Ok(switch_pages) => Ok(Staged { hand_over, switch_pages }),
        Err(error) => Err((error, hand_over.source)),
    }
}

/// Memory for the record, the staging memory, files, and the guests' hand-over state.
type Goods = (OwnedFrames, Option<OwnedFrames>, Option<Files>, HandOverState);

fn gather(
    source: &Source,
    reason: Reason,
    cpus: u64,
    pack: impl FnOnce() -> Result<HandOverState, String>,
) -> Result<Goods, StageError> {
    let record = allocate(MAX_RECORD_BYTES as u64, PageSize::Kib4, "the hand-over record")?;
    let is_update = reason == Reason::Update;
    let staging_memory = if is_update { Some(staging_memory(cpus)?) } else { None };
    let files = if is_update {
        Some(Files::of(source.image_file()).ok_or(StageError::OutOfMemory("the image's file"))?)
    } else {
        None
    };
    let hand_over_state = pack().map_err(StageError::Guests)?;
    Ok((record, staging_memory, files, hand_over_state))
}

/// Returns what a new image needs for itself: tables, heap, stacks, and its side of each guest.
fn staging_memory(cpus: u64) -> Result<OwnedFrames, StageError> {
    const BASE_BYTES: u64 = 2 << 20;
    const CPU_BYTES: u64 = 128 << 10;
    const VCPU_BYTES: u64 = 32 << 10;
    const GUEST_BYTES: u64 = 64 << 10;
    let guests = GUESTS.get().map_or(&[][..], |guests| &guests.all);
    let vcpus: u64 = guests.iter().map(|guest| u64::from(guest.config.vcpus)).sum();
    let guests = guests.len() as u64;
    let parts = [HEAP_BYTES, BASE_BYTES, cpus * CPU_BYTES, vcpus * VCPU_BYTES, guests * GUEST_BYTES];
    allocate(parts.iter().sum(), PageSize::Mib2, "the new image's own data")
}

fn build_switch_pages(hand_over: &mut HandOver, reason: Reason) -> Result<SwitchPages, StageError> {
    let mailboxes = hand_over.members.iter().map(|member| member.index as usize + 1).max().unwrap_or(1);
    let slot = hand_over.next.slot.range();
    let switch_pages = SwitchPages::build(mailboxes, slot).map_err(|_| StageError::OutOfMemory("the switch pages"))?;
    let (stamps, conversation) = (Stamps::new_zeroed(), Conversation::default());
    let no_room = StageError::OutOfMemory("a record of this host");
    let Ok(bytes) = write_record(hand_over, &switch_pages, reason, &stamps, Hashed::default(), &conversation) else {
        return Err(no_room);
    };
    // More memory may be found damaged until a restart writes the record again.
    if bytes + retired::MAX_GROWTH_BYTES > MAX_RECORD_BYTES {
        return Err(no_room);
    }
    switch_pages.enter_host_tables().map_err(|_| StageError::OutOfMemory("the switch pages' page tables"))?;
    Ok(switch_pages)
}

fn allocate(bytes: u64, alignment: PageSize, what: &'static str) -> Result<OwnedFrames, StageError> {
    let frames = memory::FRAMES.lock().allocate_below(bytes, alignment, PhysAddr(BOOT_MAPPED_BYTES));
    frames.map(OwnedFrames::new).map_err(|_| StageError::OutOfMemory(what))
}
