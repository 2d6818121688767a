// SPDX-License-Identifier: MIT OR Apache-2.0
//! The steps after all of the image in its slot is hashed, still while guests run: it is judged, the switch pages are
//! built, memory for the record is set aside, and the record is written once to see that it fits. The order is decided
//! in [`::update::stage`].

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use ::update::needs::{self, Needs};
use ::update::stage::{self, Parts, TooLarge};
use handover::layout::{Reason, Stamps};
use handover::state::DeviceKind;
use handover::{ImageError, MAX_RECORD_BYTES};
use units::{PageSize, PhysAddr};
use wire::VmState;
use zerocopy::FromZeros as _;

use super::composing::Composed;
use super::error::StageError;
use super::files::Files;
use super::hand_over::{HandOver, Staged};
use super::record::write_record;
use super::source::Source;
use super::staged_image::{Hashed, StagedImage, Trusted};
use crate::arch::address::BOOT_MAPPED_BYTES;
use crate::arch::boot;
use crate::arch::heap;
use crate::arch::memory::{self, OwnedFrames};
use crate::arch::switch_pages::SwitchPages;
use crate::guests::instance::Instance;
use crate::guests::pci::assignments;
use crate::guests::slots::GUESTS;
use crate::kernel::cpus::{self, Member};
use crate::kernel::inherited::{self, ChannelState};
use crate::kernel::ledger::retired;
use crate::lifecycle::update::hand_over_state::HandOverState;

/// Bytes that the next image's heap may need beyond this one's.
const HEAP_ROOM_BYTES: u64 = 1 << 20;

/// There is no memory for copies of the images' files.
pub const NO_ROOM_FOR_FILES: StageError = StageError::OutOfMemory("the image's file");

/// Packs what is handed over, for a reader of this version.
pub type Pack = fn(u32) -> Result<HandOverState, String>;

/// Stages a restart or an update with an image that is hashed; the error gives its file back.
pub fn stage(
    staged_image: Box<StagedImage>,
    (source, bundle, files): (Source, Option<Composed>, Option<Files>),
    reason: Reason,
    confirm_within_s: Option<u32>,
    pack: Pack,
) -> Result<Staged, (StageError, Source)> {
    if reason == Reason::Update
        && let Err(problem) = check_functions(&staged_image)
    {
        return Err((StageError::Guests(problem), source));
    }
    let policy = staged_image.policy();
    let stager = Stager { source, bundle, files, reason, confirm_within_s, pack, members: cpus::members() };
    let staged = stage::finish(stager, staged_image, policy, reason == Reason::Update);
    staged.map(|(ready, switch_pages)| Staged { hand_over: ready.0, switch_pages })
}

/// The error names a guest with PCI functions that the image cannot continue.
fn check_functions(next: &StagedImage) -> Result<(), String> {
    let runs = GUESTS.all().filter_map(|guest| guest.run::<Instance>());
    runs.filter_map(|run| Some((run.guest.clone(), refusal(next, &run)?))).next().map_or(Ok(()), |(guest, reason)| {
        let name = &guest.config.name;
        Err(format!("guest '{name}': {reason}: stop the guest first"))
    })
}

/// The reason why an image cannot go on with a guest's functions.
fn refusal(next: &StagedImage, run: &Instance) -> Option<&'static str> {
    if !next.knows_iommus() && !run.functions().is_empty() {
        // They could send any interrupt.
        return Some("it has PCI functions, and the image does not know IOMMUs");
    }
    let has_reset = || run.functions().all().iter().any(|function| function.lock().description().has_reset);
    if !next.knows_resets() && has_reset() {
        // A guest would lose each function that it resets.
        return Some("it has PCI functions, and the image does not carry out resets that guests ask for");
    }
    let reader = next.reader();
    if !reader.knows(DeviceKind::HotPlug as u32) && !run.functions().are_consecutive() {
        return Some("PCI functions have come or gone while it ran, and the image does not know hot-plug");
    }
    if !run.machine.has_devices_for(reader) {
        return Some("it has a device that the image does not know, or a PCI function comes or goes");
    }
    None
}

struct Stager {
    source: Source,
    bundle: Option<Composed>,
    files: Option<Files>,
    reason: Reason,
    confirm_within_s: Option<u32>,
    pack: Pack,
    members: Vec<Member>,
}

impl stage::Stager for Stager {
    type Placed = Box<StagedImage>;
    type Trusted = Box<Trusted>;
    type Memory = OwnedFrames;
    type Files = Files;
    type State = HandOverState;
    type Source = Source;
    type HandOver = Ready;
    type Error = StageError;

    fn check_guests(&mut self) -> Result<(), StageError> {
        let loading = GUESTS.all().find(|guest| guest.status().state == VmState::Loading);
        loading.map_or(Ok(()), |guest| Err(StageError::Loading(guest.config.name.clone())))
    }

    fn judge(&mut self, placed: Box<StagedImage>) -> Result<Box<Trusted>, StageError> {
        placed.judge(self.source.image_file())
    }

    fn trust_unchecked(&mut self, placed: Box<StagedImage>) -> Box<Trusted> {
        placed.trust_unchecked()
    }

    fn version(&mut self, next: &Box<Trusted>) -> Result<u32, StageError> {
        let version = next.image.version_to_write(boot::newest_version()).ok_or_else(|| {
            let note = next.image.note();
            StageError::Image(ImageError::OtherVersions { oldest: note.oldest.get(), newest: note.newest.get() })
        })?;
        retired::warn_if_dropped(version);
        assignments::warn_if_dropped(version);
        Ok(version)
    }

    fn allocate_record(&mut self) -> Result<OwnedFrames, StageError> {
        allocate(MAX_RECORD_BYTES as u64, PageSize::Kib4, "the hand-over record")
    }

    /// For tables, heap, stacks, and the new image's side of each guest.
    fn allocate_staging_memory(&mut self) -> Result<OwnedFrames, StageError> {
        let vcpus = GUESTS.all().map(|guest| u64::from(guest.config.vcpus)).sum();
        let cpus = self.members.len() as u64;
        let needs =
            Needs { heap_bytes: heap::bytes() + HEAP_ROOM_BYTES, cpus, guests: GUESTS.all().count() as u64, vcpus };
        allocate(needs.staging_bytes(), PageSize::Mib2, "the new image's own data")
    }

    fn copied_files(&mut self) -> Result<Files, StageError> {
        self.files.take().ok_or(NO_ROOM_FOR_FILES)
    }

    fn pack(&mut self, version: u32) -> Result<HandOverState, StageError> {
        (self.pack)(version).map_err(StageError::Guests)
    }

    fn assemble(self, parts: Parts<Self>) -> Ready {
        let hand_over = Box::new(HandOver {
            generation: inherited::generation() + 1,
            next: parts.next,
            source: self.source,
            bundle: self.bundle,
            record: parts.record,
            version: parts.version,
            staging_memory: parts.staging_memory,
            files: parts.files,
            confirm_within_s: self.confirm_within_s,
            hand_over_state: Arc::new(parts.state),
            members: self.members,
        });
        Ready(hand_over, self.reason)
    }

    fn into_source(self) -> Source {
        self.source
    }
}

/// All that is handed over, and why.
struct Ready(Box<HandOver>, Reason);

impl stage::HandOver for Ready {
    type SwitchPages = SwitchPages;
    type Source = Source;
    type Error = StageError;
    const GROWTH_BYTES: usize = retired::MAX_GROWTH_BYTES;

    fn build_switch_pages(&mut self) -> Result<SwitchPages, StageError> {
        let mailboxes = needs::mailboxes(self.0.members.iter().map(|member| member.index));
        let slot = self.0.next.slot.range();
        SwitchPages::build(mailboxes, slot).map_err(|_| StageError::OutOfMemory("the switch pages"))
    }

    fn write_record(&mut self, switch_pages: &SwitchPages) -> Result<usize, StageError> {
        let (stamps, channel_state) = (Stamps::new_zeroed(), ChannelState::default());
        write_record(&mut self.0, switch_pages, self.1, &stamps, Hashed::default(), &channel_state)
            .map_err(|_| TooLarge.into())
    }

    fn map(&mut self, switch_pages: &SwitchPages) -> Result<(), StageError> {
        switch_pages.enter_host_tables().map_err(|_| StageError::OutOfMemory("the switch pages' page tables"))
    }

    fn into_source(self) -> Source {
        self.0.source
    }
}

impl From<TooLarge> for StageError {
    fn from(_: TooLarge) -> Self {
        Self::OutOfMemory("a record of this host")
    }
}

fn allocate(bytes: u64, alignment: PageSize, what: &'static str) -> Result<OwnedFrames, StageError> {
    let frames = memory::FRAMES.lock().allocate_below(bytes, alignment, PhysAddr(BOOT_MAPPED_BYTES));
    frames.map(OwnedFrames::new).map_err(|_| StageError::OutOfMemory(what))
}
