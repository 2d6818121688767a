// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state that the image before this one has handed over: read from its record, used while this image boots, and
//! given back.

use alloc::format;
use alloc::string::String;
use alloc::vec;

use ::boot::options::SelfTest;
use arrayvec::{ArrayString, ArrayVec};
use boot::{BootInfo, MapBuilder, Module, RegionKind};
use frames::FrameRange;
use handover::block::{self, Owner};
use handover::layout::{Checked, Control, LogRing, ProcessorState, Purpose, Reason, Stamps, control_flag, unpadded};
use handover::record::Record;
use handover::state::Late;
use handover::{Items, RecordError};
use spin::{Mutex, Once};
use units::{PhysAddr, PhysRange};
use wire::Subscription;

use super::platform::BOOT;
use super::timeline::{self, Name};
use crate::arch::boot::{self as entry, BootMemory};
use crate::arch::smp::Adoption;
use crate::arch::timer::Rates;
use crate::arch::{apic, clock, crossing, memory, timer};

/// The length at the end of the frames in which a file is kept.
pub const FILE_LENGTH_BYTES: usize = size_of::<u64>();

/// The record, until it is given back.
static RECORD: Mutex<Option<Record<'static>>> = Mutex::new(None);
/// Where files are kept that images were made from.
static FILES: Once<ArrayVec<(Purpose, PhysRange), 2>> = Once::new();
/// What is needed after that.
static KNOWN: Once<Known> = Once::new();
/// The build of the image before, where only its file says.
static OLD_BUILD: Once<ArrayString<{ handover::image::BUILD_TEXT_BYTES }>> = Once::new();

/// The control channel's conversation as the next image continues it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Conversation {
    /// The request that the next image answers.
    pub request: Option<u32>,
    /// What is streamed.
    pub subscription: Subscription,
    /// Log records of this time or later are still to be streamed, in ticks.
    pub log_since: u64,
    /// The next event to be streamed.
    pub next_event: u64,
    /// How many bytes its UART takes at once, and whether they leave at the line's rate; `None` where the UART is to be
    /// probed again.
    pub line: Option<(u8, bool)>,
}

/// What of the record outlives it.
#[derive(Clone, Debug)]
pub struct Known {
    /// How many images have run, this one included.
    pub generation: u64,
    /// The old image's version.
    pub old_version: ArrayString<{ handover::layout::VERSION_TEXT_BYTES }>,
    /// Which build the old image is; empty where its record does not say.
    pub old_build: ArrayString<{ handover::image::BUILD_TEXT_BYTES }>,
    /// When the old image got how far.
    pub stamps: Option<Stamps>,
    /// How this image was checked.
    pub checked: Option<Checked>,
    /// The control channel's conversation.
    pub conversation: Conversation,
    /// Processors that the old image had, this one included.
    pub processors: u32,
    /// Guests go on.
    pub is_update: bool,
}

/// Which image since the machine was switched on this is, from 1.
pub fn generation() -> u64 {
    KNOWN.get().map_or(1, |known| known.generation)
}

/// What the image before told; `None` where a loader started this one.
pub fn known() -> Option<&'static Known> {
    KNOWN.get()
}

/// Which build the image before is, by its record, or else by its file; empty where neither says.
pub fn old_build() -> &'static str {
    match known().map_or("", |known| known.old_build.as_str()) {
        "" => OLD_BUILD.call_once(build_of_previous_file),
        build => build,
    }
}

fn build_of_previous_file() -> ArrayString<{ handover::image::BUILD_TEXT_BYTES }> {
    let image = file(Purpose::PreviousFile).and_then(|file| handover::Image::describe(file).ok());
    image.and_then(|image| ArrayString::from(image.build()).ok()).unwrap_or_default()
}

/// Version and build of the image before this one, and of this one.
pub fn succession() -> Option<(String, String)> {
    let known = known()?;
    let old = format!("{} {}", known.old_version, old_build());
    let new = format!("{} {}", env!("CARGO_PKG_VERSION"), entry::BUILD);
    Some((old.trim_end().into(), new.trim_end().into()))
}

/// Reads the record at `at`, settles in the slot that it names, and goes on with the clock.
///
/// # Errors
/// Why the record cannot be used.
pub fn take_over(at: PhysAddr) -> Result<BootInfo, RecordError> {
    let unreadable = RecordError::BadLength(0);
    let header = BootMemory.bytes(at.0, size_of::<handover::layout::Header>() as u64).ok_or(unreadable)?;
    let bytes = BootMemory.bytes(at.0, Record::bytes(header)? as u64).ok_or(unreadable)?;
    let record = Record::open(bytes)?;
    entry::settle_in(record.slot().start(), record.slot().bytes());
    if record.version > entry::newest_version() {
        return Err(RecordError::OtherVersion(record.version));
    }
    timer::resume(Rates {
        tsc_hz: record.clock.tsc_hz.get(),
        tsc_at_boot: record.clock.tsc_at_boot.get(),
        apic_ratio: record.clock.apic_ratio.get(),
    });
    clock::resume(record.clock.unix_seconds_at_boot.get());
    KNOWN.call_once(|| known_of(&record));
    FILES.call_once(|| {
        let kept = |purpose| record.kept_for(purpose).next().map(|range| (purpose, range));
        [Purpose::File, Purpose::PreviousFile].into_iter().filter_map(kept).collect()
    });
    *RECORD.lock() = Some(record);
    boot_info(&record)
}

fn known_of(record: &Record<'_>) -> Known {
    Known {
        generation: record.host.generation.get(),
        old_version: ArrayString::from(unpadded(&record.host.version)).unwrap_or_default(),
        old_build: ArrayString::from(record.build).unwrap_or_default(),
        stamps: record.stamps,
        checked: record.checked,
        conversation: conversation(record),
        processors: record.processors.len() as u32,
        is_update: record.host.reason.get() == Reason::Update as u32,
    }
}

fn conversation(record: &Record<'_>) -> Conversation {
    record.control.map_or_else(Conversation::default, conversation_of)
}

fn conversation_of(control: Control) -> Conversation {
    let is_set = |flag| control.flags.get() & flag != 0;
    Conversation {
        request: is_set(control_flag::IS_ASKED).then_some(control.request.get()),
        subscription: Subscription {
            log: is_set(control_flag::LOG),
            events: is_set(control_flag::EVENTS),
            consoles: is_set(control_flag::CONSOLES),
        },
        log_since: control.log_since.get(),
        next_event: control.next_event.get(),
        line: is_set(control_flag::LINE).then(|| ((control.flags.get() >> 16) as u8, is_set(control_flag::IS_PACED))),
    }
}

#[inline(never)]
fn boot_info(record: &Record<'_>) -> Result<BootInfo, RecordError> {
    let mut map = MapBuilder::default();
    for region in record.memory_map.iter() {
        let kind = RegionKind::from_acpi_type(region.kind.get());
        let added = map.add(PhysAddr(region.start.get()), region.bytes.get(), kind);
        added.map_err(|_| RecordError::BadSection(handover::Kind::MemoryMap))?;
    }
    let map = map.finish().map_err(|_| RecordError::BadSection(handover::Kind::MemoryMap))?;
    let mut info = BootInfo::handed_over(map, record.rsdp);
    info.command_line =
        ArrayString::from(record.command_line).map_err(|_| RecordError::BadSection(handover::Kind::CommandLine))?;
    for module in record.modules.iter() {
        let range = PhysRange::from_start(PhysAddr(module.start.get()), module.bytes.get());
        let command_line = ArrayString::from(unpadded(&module.line)).unwrap_or_default();
        let module = range.filter(|range| !range.is_empty()).map(|range| Module { range, command_line });
        let is_taken = module.is_some_and(|module| info.modules.try_push(module).is_ok());
        if !is_taken {
            return Err(RecordError::BadSection(handover::Kind::Modules));
        }
    }
    Ok(info)
}

/// How many records the image before has logged on this processor of its; `None` if it has left no log of it.
pub fn logged(processor: u32) -> Option<u64> {
    ring_of(processor).map(|ring| ring.records.get())
}

/// Shows what the image before has logged on this processor of its: a ring, by its own account. Call while it is kept,
/// and once this image's own page tables show it.
pub fn with_log(processor: u32, visit: impl FnOnce(&[u8])) {
    let Some(ring) = ring_of(processor) else { return };
    let range = PhysRange::from_start(PhysAddr(ring.start.get()), ring.bytes.get());
    if let Some(mut frames) = range.and_then(FrameRange::adopt) {
        visit(memory::bytes_of(&mut frames));
        // It stays kept until all that is kept is given back.
        frames.leak();
    }
}

fn ring_of(processor: u32) -> Option<LogRing> {
    let record = RECORD.lock();
    record.as_ref()?.log.iter().find(|ring| ring.processor.get() == processor)
}

/// Frames with rings of the timeline, which this image goes on in.
pub fn timelines() -> impl Iterator<Item = FrameRange> {
    RECORD.lock().map(|record| record.kept_for(Purpose::Timeline)).into_iter().flatten().filter_map(FrameRange::adopt)
}

/// The CPUs of whose log there is a ring, and the ring's bytes.
pub fn logs() -> impl Iterator<Item = (u32, u64)> {
    let rings = RECORD.lock().map_or(Items::EMPTY, |record| record.log);
    rings.iter().map(|ring| (ring.processor.get(), ring.bytes.get()))
}

/// Runs `adopt` on the events of the image before, and the number of the next one. An image that left no events has
/// left that number.
pub fn with_events(adopt: impl Fn(&[u8], u64)) {
    let next = record().and_then(|record| record.control).map_or(0, |control| control.events.get());
    let is_adopted = with_late(|late, tail| adopt(tail, late.control.events.get()));
    if is_adopted.is_none() {
        adopt(&[], next);
    }
}

/// Says where this image comes from, and whom it has lost on the way.
pub fn announce() {
    let record = RECORD.lock();
    let (Some(record), Some(known)) = (record.as_ref(), known()) else { return };
    let (generation, slot, version) = (known.generation, record.slot(), record.version);
    log::info!(
        "generation {generation}, handed over by {} in memory at {slot}, in version {version}",
        format_args!("{} {}", known.old_version, old_build())
    );
    for processor in record.processors.iter() {
        if processor.state.get() == ProcessorState::Lost as u32 {
            let (index, apic_id) = (processor.number, processor.apic_id);
            log::error!("processor {index} (APIC id {apic_id}) did not park in time: the host goes on without it");
        }
    }
}

/// Whether guests go on from where the image before left them.
pub fn is_update() -> bool {
    KNOWN.get().is_some_and(|known| known.is_update)
}

/// What the image before told last of all: the conversation, and when guests stopped. For an image that has taken over.
pub fn late() -> Option<(Conversation, Stamps)> {
    with_late(|late, _| (conversation_of(late.control), late.stamps))
}

/// Shows the block of what the image before told last, and what is in its tail.
fn with_late<T>(visit: impl FnOnce(Late, &[u8]) -> T) -> Option<T> {
    let place = (*RECORD.lock())?.block_of(handover::state::BlockKind::Late, 0, 0)?;
    let visited = with_block(place.start.get(), place.bytes.get(), |bytes| {
        block::open::<Late>(bytes, Owner { guest: 0, vcpu: 0 }).map(|(late, tail)| visit(late, tail))
    });
    visited?.inspect_err(|error| log::error!("what the image before told last: {error}")).ok()
}

/// Shows memory that is kept for a block.
pub fn with_block<T>(start: u64, bytes: u64, visit: impl FnOnce(&[u8]) -> T) -> Option<T> {
    let mut frames = PhysRange::from_start(PhysAddr(start), bytes).and_then(FrameRange::adopt)?;
    let shown = visit(memory::bytes_of(&mut frames));
    // It stays kept until all that is kept is given back.
    frames.leak();
    Some(shown)
}

/// The record, while it is kept.
pub fn record() -> Option<Record<'static>> {
    *RECORD.lock()
}

/// What an image on trial has: its memory, and the crossing over which it came.
///
/// # Errors
/// The record names none.
pub fn on_trial() -> Result<(PhysRange, PhysRange), RecordError> {
    let record = RECORD.lock().ok_or(RecordError::Missing(handover::Kind::Kept))?;
    let one = |purpose| record.kept_for(purpose).next().ok_or(RecordError::BadSection(handover::Kind::Kept));
    Ok((one(Purpose::Advance)?, one(Purpose::Crossing)?))
}

/// The file that is kept for this purpose. Its frames end with its length.
pub fn file(purpose: Purpose) -> Option<&'static [u8]> {
    let files = FILES.get()?;
    let range = files.iter().find(|(of, _)| *of == purpose)?.1;
    let (room, length) = memory::module_bytes(range)?.split_last_chunk::<FILE_LENGTH_BYTES>()?;
    room.get(..u64::from_le_bytes(*length) as usize)
}

/// Whether a self-test wants this failure, in the image of this generation.
pub fn fails_by(test: SelfTest, wanted: u64) -> bool {
    generation() == wanted && BOOT.get().is_some_and(|(_, options)| options.self_tests.contains(&test))
}

/// The processors that take part, the one that hands over first: the old image's number, identifier, and page or
/// mailbox.
pub fn members() -> impl Iterator<Item = (u32, u32, u64)> {
    let record = *RECORD.lock();
    let processors = record.map_or(Items::EMPTY, |record| record.processors);
    processors.iter().map(|one| (one.number.get(), one.apic_id.get(), one.mailbox.get()))
}

/// Whether the clock's rates are known.
pub fn has_clock() -> bool {
    KNOWN.get().is_some()
}

/// Whether all clocks agreed.
pub fn clocks_agree() -> bool {
    RECORD.lock().is_some_and(|record| record.host.clocks_agree.get() == 1)
}

/// Of the processors with these identifiers, those that wait at their mailboxes; `None` if none does, or they cannot be
/// had from there.
pub fn adoption(ids: &[u32]) -> Option<Adoption> {
    let record = (*RECORD.lock())?;
    let version = record.crossing.mailbox_version.get();
    if version != bringup::park::VERSION {
        log::warn!("parked processors are sent INIT: their mailboxes have version {version}");
        return None;
    }
    let crossing = record.kept_for(Purpose::Crossing).next()?;
    let mut mailboxes = vec![None; ids.len()];
    for processor in record.processors.iter().filter(|processor| is_parked(processor.state.get())) {
        let apic_id = processor.apic_id.get();
        let place = ids.iter().position(|id| *id == apic_id).and_then(|index| mailboxes.get_mut(index));
        let mailbox = crossing::inherited_mailbox(processor.mailbox.get(), crossing);
        match (place, mailbox.map(|mailbox| mailbox.adopt(apic_id))) {
            (Some(place), Some(Ok(()))) => *place = mailbox.map(|mailbox| (apic_id, mailbox)),
            (_, Some(Err(error))) => log::error!("the processor with APIC id {apic_id} is left out: {error}"),
            _ => log::error!(
                "the processor with APIC id {apic_id} is left out: it is nobody's, or its mailbox is nowhere"
            ),
        }
    }
    let last = mailboxes.iter().rposition(Option::is_some)? as u32;
    let stuck = fails_by(SelfTest::StuckInMailbox, 2).then_some(last);
    Some(Adoption { mailboxes, root: record.crossing.root.get(), stuck })
}

fn is_parked(state: u32) -> bool {
    state == ProcessorState::Parked as u32
}

/// Every CPU that takes part is online: all memory that the image before left becomes free. CPUs that it parked and
/// that are not among those online are sent INIT first, after which they need no memory.
pub fn give_back(online: &[u32]) {
    let Some(record) = RECORD.lock().take() else { return };
    let _span = timeline::span(Name::GiveBack, 0);
    let parked = record.processors.iter().filter(|processor| is_parked(processor.state.get()));
    parked.map(|processor| processor.apic_id.get()).filter(|id| !online.contains(id)).for_each(apic::send_init);
    for purpose in [Purpose::Crossing, Purpose::Log, Purpose::Blocks, Purpose::Record] {
        record.kept_for(purpose).filter_map(FrameRange::adopt).for_each(memory::release);
    }
}
