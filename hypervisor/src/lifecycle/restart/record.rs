// SPDX-License-Identifier: MIT OR Apache-2.0
//! The record of what the new image needs to know, as this one writes it. Nothing here allocates or waits.

use handover::layout::{
    CheckPolicy, Checked, Clock, Crossing as CrossingSection, Host, Kept, Kind, LogRing, Module, Processor, Purpose,
    Reason, Region, Stamps, padded,
};
use handover::{Full, Writer};
use seal::Verify;
use units::PhysRange;

use super::candidate::{Hashed, Trusted};
use super::parcel::Parcel;
use super::upload::Upload;
use crate::arch::boot as entry;
use crate::arch::crossing::Crossing;
use crate::arch::{clock, percpu, timer};
use crate::guests::events;
use crate::kernel::console;
use crate::kernel::console::log::Legacy;
use crate::kernel::inherited::Conversation;
use crate::kernel::ledger::retired;
use crate::kernel::platform::BOOT;
use crate::kernel::processors::{self, Member};
use crate::kernel::timeline;

/// Writes the record of what the new image needs to know. Returns its length in bytes.
pub fn write_record(
    parcel: &mut Parcel,
    crossing: &Crossing,
    reason: Reason,
    stamps: &Stamps,
    hashed: Hashed,
    conversation: &Conversation,
) -> Result<usize, Full> {
    let Some((boot, _)) = BOOT.get() else { return Err(Full) };
    let ranges = [
        (parcel.next.slot.range(), Purpose::Image),
        (parcel.record.range(), Purpose::Record),
        (crossing.range(), Purpose::Crossing),
    ];
    let rings = || console::log::legacies();
    let kept_rings = rings().map(|ring| (ring.range, Purpose::Log));
    let timelines = timeline::memory().map(|range| (range, Purpose::Timeline));
    let baggage = &parcel.baggage;
    let blocks = baggage.blocks.iter().map(|block| (block.range(), Purpose::Blocks));
    let advance = parcel.advance.as_ref().map(|advance| (advance.range(), Purpose::Advance));
    let files = parcel.files.as_ref();
    let next_file = files.map(|files| (files.next.range(), Purpose::File));
    let own_file = files.and_then(|files| files.own.as_ref()).map(|own| (own.range(), Purpose::PreviousFile));
    let is_update = reason == Reason::Update;
    let host = host_section(parcel.generation, reason, parcel.next.slot.range());
    let way = CrossingSection {
        mailbox_version: if is_update { trial_version(&parcel.next) } else { bringup::park::VERSION }.into(),
        zero: 0.into(),
        root: crossing.next_root().into(),
    };
    let checked = checked_section(&parcel.next, hashed);
    let modules = modules(&boot.modules, parcel.source.next_bundle().map(Upload::range));
    let mut writer = Writer::for_version(parcel.record.bytes_mut(), parcel.version);
    writer.one(Kind::Host, &host).one(Kind::Clock, &clock_section()).one(Kind::Crossing, &way);
    writer.raw(Kind::CommandLine, boot.command_line.as_bytes());
    writer.raw(Kind::Firmware, boot.rsdp.map(|rsdp| rsdp.0.to_le_bytes()).as_ref().map_or(&[], |bytes| &bytes[..]));
    writer.each(Kind::MemoryMap, boot.memory_map.regions().iter().map(region));
    writer.each(Kind::Modules, modules);
    writer.each(Kind::Processors, parcel.members.iter().map(|member| processor(member, is_update, crossing)));
    let kept_ranges = ranges
        .into_iter()
        .chain(advance)
        .chain(next_file)
        .chain(own_file)
        .chain(kept_rings)
        .chain(timelines)
        .chain(blocks);
    writer.each(Kind::Kept, kept_ranges.map(kept));
    writer.one(Kind::Stamps, stamps).one(Kind::Control, &conversation.section(events::next_sequence()));
    writer.each(Kind::Log, rings().map(log_ring)).one(Kind::Checked, &checked);
    writer.raw(Kind::Build, entry::BUILD.as_bytes());
    writer.each(Kind::Retired, retired::section());
    writer.each(Kind::Guests, baggage.guests.iter().copied());
    writer.each(Kind::GuestMemory, baggage.memory.iter().copied());
    writer.each(Kind::Blocks, baggage.blocks.iter().map(|block| block.place));
    writer.finish()
}

/// Of the pages between the images: the newest that both know.
fn trial_version(next: &Trusted) -> u32 {
    next.image.trial_version().min(::update::trial::VERSION)
}

fn host_section(generation: u64, reason: Reason, slot: PhysRange) -> Host {
    Host {
        generation: generation.into(),
        reason: (reason as u32).into(),
        clocks_agree: u32::from(processors::clocks_agree()).into(),
        slot_start: slot.start().0.into(),
        slot_bytes: slot.bytes().into(),
        version: padded(env!("CARGO_PKG_VERSION")),
    }
}

fn clock_section() -> Clock {
    let rates = timer::rates();
    Clock {
        tsc_hz: rates.tsc_hz.into(),
        tsc_at_boot: rates.tsc_at_boot.into(),
        apic_ratio: rates.apic_ratio.into(),
        unix_seconds_at_boot: clock::unix_seconds_at_boot().into(),
    }
}

fn region(region: &boot::Region) -> Region {
    Region {
        start: region.range.start().0.into(),
        bytes: region.range.bytes().into(),
        kind: region.kind.to_acpi_type().into(),
        zero: 0.into(),
    }
}

/// The loader's modules; a bundle that was sent stands in for the first one.
fn modules(all: &[boot::Module], bundle: Option<PhysRange>) -> impl Iterator<Item = Module> {
    let first = bundle.map(|range| (range, all.first().map_or("", |module| module.command_line.as_str())));
    let rest = all.iter().skip(usize::from(bundle.is_some()));
    first.into_iter().chain(rest.map(|module| (module.range, module.command_line.as_str()))).map(module)
}

fn module((range, line): (PhysRange, &str)) -> Module {
    Module { start: range.start().0.into(), bytes: range.bytes().into(), line: padded(line) }
}

fn checked_section(next: &Trusted, gap: Hashed) -> Checked {
    let policy = match next.policy {
        Verify::Sha256 => CheckPolicy::Sha256,
        Verify::Early => CheckPolicy::Early,
        Verify::None => CheckPolicy::None,
    };
    Checked {
        policy: (policy as u32).into(),
        zero: 0.into(),
        staged_bytes: next.hashed.bytes.into(),
        staged_ticks: next.hashed.ticks.into(),
        gap_bytes: gap.bytes.into(),
        gap_ticks: gap.ticks.into(),
    }
}

fn processor(member: &Member, is_update: bool, crossing: &Crossing) -> Processor {
    let mailbox = match member.index {
        index if is_update => crossing.trial_page_address(index),
        percpu::BOOT_PROCESSOR => 0,
        index => crossing.mailbox_address(index),
    };
    Processor {
        apic_id: member.apic_id.into(),
        state: (member.state as u32).into(),
        mailbox: mailbox.into(),
        number: member.index.into(),
        zero: 0.into(),
    }
}

fn kept((range, purpose): (PhysRange, Purpose)) -> Kept {
    Kept {
        start: range.start().0.into(),
        bytes: range.bytes().into(),
        purpose: (purpose as u32).into(),
        zero: 0.into(),
    }
}

fn log_ring(ring: Legacy) -> LogRing {
    LogRing {
        start: ring.range.start().0.into(),
        bytes: ring.range.bytes().into(),
        records: ring.records.into(),
        processor: ring.processor.into(),
        zero: 0.into(),
    }
}
