// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is left once the image in its slot is trusted, still while guests run: the crossing is built, memory for the
//! record is set aside, and the record is written once to see that it fits.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;

use handover::layout::{Reason, Stamps};
use handover::{ImageError, MAX_RECORD_BYTES};
use units::{PageSize, PhysAddr};
use zerocopy::FromZeros as _;

use super::candidate::{Hashed, Trusted};
use super::error::StageError;
use super::files::Files;
use super::parcel::{Parcel, Staged};
use super::record::write_record;
use super::source::Source;
use crate::arch::address::BOOT_MAPPED_BYTES;
use crate::arch::boot;
use crate::arch::crossing::Crossing;
use crate::arch::heap::HEAP_BYTES;
use crate::arch::memory::{self, OwnedFrames};
use crate::guests::guest::GUESTS;
use crate::kernel::inherited::{self, Conversation};
use crate::kernel::ledger::retired;
use crate::kernel::processors;
use crate::lifecycle::update::baggage::Baggage;

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
