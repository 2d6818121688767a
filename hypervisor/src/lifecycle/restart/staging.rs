// SPDX-License-Identifier: MIT OR Apache-2.0
//! The steps after the image in its slot is trusted, still while guests run: the switch pages are built, memory for the
//! record is set aside, and the record is written once to see that it fits.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;

use ::update::stage::{self, Needs};
use handover::layout::{Reason, Stamps};
use handover::{ImageError, MAX_RECORD_BYTES};
use units::{PageSize, PhysAddr};
use zerocopy::FromZeros as _;

use super::error::StageError;
use super::files::Files;
use super::hand_over::{HandOver, Staged};
use super::record::write_record;
use super::source::Source;
use super::staged_image::{Hashed, Trusted};
use crate::arch::address::BOOT_MAPPED_BYTES;
use crate::arch::boot;
use crate::arch::heap::HEAP_BYTES;
use crate::arch::memory::{self, OwnedFrames};
use crate::arch::switch_pages::SwitchPages;
use crate::guests::guest::GUESTS;
use crate::kernel::cpus;
use crate::kernel::inherited::{self, Conversation};
use crate::kernel::ledger::retired;
use crate::lifecycle::update::hand_over_state::HandOverState;

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

/// Returns memory for what a new image needs for itself: tables, heap, stacks, and its side of each guest.
fn staging_memory(cpus: u64) -> Result<OwnedFrames, StageError> {
    let guests = GUESTS.get().map_or(&[][..], |guests| &guests.all);
    let vcpus = guests.iter().map(|guest| u64::from(guest.config.vcpus)).sum();
    let needs = Needs { heap_bytes: HEAP_BYTES, cpus, guests: guests.len() as u64, vcpus };
    allocate(needs.staging_bytes(), PageSize::Mib2, "the new image's own data")
}

fn build_switch_pages(hand_over: &mut HandOver, reason: Reason) -> Result<SwitchPages, StageError> {
    let mailboxes = stage::mailboxes(hand_over.members.iter().map(|member| member.index));
    let slot = hand_over.next.slot.range();
    let switch_pages = SwitchPages::build(mailboxes, slot).map_err(|_| StageError::OutOfMemory("the switch pages"))?;
    let (stamps, conversation) = (Stamps::new_zeroed(), Conversation::default());
    let no_room = StageError::OutOfMemory("a record of this host");
    let Ok(bytes) = write_record(hand_over, &switch_pages, reason, &stamps, Hashed::default(), &conversation) else {
        return Err(no_room);
    };
    if !stage::will_fit(bytes, retired::MAX_GROWTH_BYTES, MAX_RECORD_BYTES) {
        return Err(no_room);
    }
    switch_pages.enter_host_tables().map_err(|_| StageError::OutOfMemory("the switch pages' page tables"))?;
    Ok(switch_pages)
}

fn allocate(bytes: u64, alignment: PageSize, what: &'static str) -> Result<OwnedFrames, StageError> {
    let frames = memory::FRAMES.lock().allocate_below(bytes, alignment, PhysAddr(BOOT_MAPPED_BYTES));
    frames.map(OwnedFrames::new).map_err(|_| StageError::OutOfMemory(what))
}
