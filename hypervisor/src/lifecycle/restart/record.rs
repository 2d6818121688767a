// SPDX-License-Identifier: MIT OR Apache-2.0
//! The record of what the new image needs to know, as this one writes it. Nothing here allocates or waits.

use ::update::needs::common_trial_version;
use handover::layout::{
    CheckPolicy, Checked, Clock, Cpu, Deadline, Host, Kept, Kind, LogRing, Module, Purpose, Reason, Region, Signer,
    Stamps, SwitchPages as SwitchPagesSection, padded,
};
use handover::{Full, Writer};
use seal::Verify;
use units::{PageSize, PhysRange};

use super::composing::Composed;
use super::hand_over::HandOver;
use super::staged_image::{Hashed, Trusted};
use crate::arch::boot as entry;
use crate::arch::switch_pages::SwitchPages;
use crate::arch::{clock, percpu, timer};
use crate::guests::{configuration, control_keys, events};
use crate::kernel::console;
use crate::kernel::console::log::Legacy;
use crate::kernel::cpus::{self, Member};
use crate::kernel::inherited::ChannelState;
use crate::kernel::iommu;
use crate::kernel::ledger::retired;
use crate::kernel::platform::boot_info;
use crate::kernel::timeline;

/// Writes the record of what the new image needs to know. Returns its length in bytes.
pub fn write_record(
    hand_over: &mut HandOver,
    switch_pages: &SwitchPages,
    reason: Reason,
    stamps: &Stamps,
    hashed: Hashed,
    channel_state: &ChannelState,
) -> Result<usize, Full> {
    let Some(boot) = boot_info() else { return Err(Full) };
    let ranges = [
        (hand_over.next.slot.range(), Purpose::Image),
        (hand_over.record.range(), Purpose::Record),
        (switch_pages.range(), Purpose::SwitchPages),
    ];
    let rings = || console::log::legacies();
    let kept_rings = rings().map(|ring| (ring.range, Purpose::Log));
    let timelines = timeline::memory().map(|range| (range, Purpose::Timeline));
    let hand_over_state = &hand_over.hand_over_state;
    let blocks = hand_over_state.blocks.iter().map(|block| (block.range(), Purpose::Blocks));
    let staging_memory =
        hand_over.staging_memory.as_ref().map(|staging_memory| (staging_memory.range(), Purpose::Staging));
    let files = hand_over.files.as_ref();
    let next_file = files.map(|files| (files.next.range(), Purpose::File));
    let own_file = files.and_then(|files| files.own.as_ref()).map(|own| (own.range(), Purpose::PreviousFile));
    let iommu_tables = iommu::pieces().into_iter().map(|range| (range, Purpose::Iommu));
    let is_update = reason == Reason::Update;
    let host = host_section(hand_over.generation, reason, hand_over.next.slot.range());
    let way = SwitchPagesSection {
        mailbox_version: if is_update {
            common_trial_version(hand_over.next.image.trial_version())
        } else {
            bringup::park::VERSION
        }
        .into(),
        zero: 0.into(),
        root: switch_pages.next_root().into(),
    };
    let checked = checked_section(&hand_over.next, hashed);
    let bundle = hand_over.source.next_bundle();
    let own_bundle = bundle.and(hand_over.confirm_within_s).and_then(|_| own_bundle(&boot.modules));
    let modules = modules(&boot.modules, bundle.or_else(|| hand_over.bundle.as_ref().map(Composed::range)));
    let mut writer = Writer::for_version(hand_over.record.bytes_mut(), hand_over.version);
    writer.one(Kind::Host, &host).one(Kind::Clock, &clock_section()).one(Kind::SwitchPages, &way);
    writer.raw(Kind::CommandLine, boot.command_line.as_bytes());
    writer.raw(Kind::Firmware, boot.rsdp.map(|rsdp| rsdp.0.to_le_bytes()).as_ref().map_or(&[], |bytes| &bytes[..]));
    writer.each(Kind::MemoryMap, boot.memory_map.regions().iter().map(region));
    writer.each(Kind::Modules, modules);
    writer.each(Kind::Cpus, hand_over.members.iter().map(|member| cpu(member, is_update, switch_pages)));
    let kept_ranges = ranges
        .into_iter()
        .chain(staging_memory)
        .chain(next_file)
        .chain(own_file)
        .chain(own_bundle.map(|range| (range, Purpose::PreviousBundle)))
        .chain(kept_rings)
        .chain(timelines)
        .chain(iommu_tables)
        .chain(blocks);
    writer.each(Kind::Kept, kept_ranges.map(kept));
    writer.one(Kind::Stamps, stamps).one(Kind::Control, &channel_state.section(events::next_sequence()));
    writer.each(Kind::Log, rings().map(log_ring)).one(Kind::Checked, &checked);
    writer.raw(Kind::Build, entry::BUILD.as_bytes());
    if let Some(signer) = hand_over.next.signer {
        writer.one(Kind::Signer, &Signer { key: signer.bytes() });
    }
    writer.each(Kind::Retired, retired::section());
    // A restart with another bundle begins with what that one's configurations name.
    let is_kept = is_update || hand_over.source.next_bundle().is_none();
    writer.each(Kind::Assignments, hand_over_state.assignments.iter().copied().filter(|_| is_kept));
    // The next image must know them, if there are any.
    if !hand_over_state.ports.is_empty() {
        writer.each(Kind::Ports, hand_over_state.ports.iter().copied());
    }
    // The same.
    let revoked = control_keys::section();
    if !revoked.is_empty() {
        writer.each(Kind::RevokedKeys, revoked);
    }
    if let Some(seconds) = hand_over.confirm_within_s {
        writer.one(Kind::Deadline, &Deadline { seconds: seconds.into(), zero: 0.into() });
    }
    writer.each(Kind::Guests, hand_over_state.guests.iter().copied());
    writer.each(Kind::GuestMemory, hand_over_state.memory.iter().copied());
    writer.each(Kind::Blocks, hand_over_state.blocks.iter().map(|block| block.place));
    writer.finish()
}

fn host_section(generation: u64, reason: Reason, slot: PhysRange) -> Host {
    Host {
        generation: generation.into(),
        reason: (reason as u32).into(),
        clocks_agree: u32::from(cpus::clocks_agree()).into(),
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

/// The loader's modules; a bundle that was sent or composed stands in for the first one.
fn modules(all: &[boot::Module], bundle: Option<PhysRange>) -> impl Iterator<Item = Module> {
    let first = bundle.map(|range| (range, all.first().map_or("", |module| module.command_line.as_str())));
    let rest = all.iter().skip(usize::from(bundle.is_some()));
    first.into_iter().chain(rest.map(|module| (module.range, module.command_line.as_str()))).map(module)
}

/// The frames of the bundle that this image runs, if nothing else is in them, and its configuration has not changed
/// since. What stands behind the archive is passed over.
fn own_bundle(modules: &[boot::Module]) -> Option<PhysRange> {
    let (bundle, others) = modules.split_first().filter(|_| configuration::changes() == 0)?;
    let frames = bundle.range.aligned_outwards(PageSize::Kib4.bytes())?;
    let is_alone = frames.start() == bundle.range.start()
        && others.iter().all(|module| module.range.intersection(frames).is_none());
    is_alone.then_some(frames)
}

fn module((range, line): (PhysRange, &str)) -> Module {
    Module { start: range.start().0.into(), bytes: range.bytes().into(), line: padded(line) }
}

fn checked_section(next: &Trusted, blackout: Hashed) -> Checked {
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
        blackout_bytes: blackout.bytes.into(),
        blackout_ticks: blackout.ticks.into(),
    }
}

fn cpu(member: &Member, is_update: bool, switch_pages: &SwitchPages) -> Cpu {
    let mailbox = match member.index {
        index if is_update => switch_pages.trial_page_address(index),
        percpu::BOOT_CPU => 0,
        index => switch_pages.mailbox_address(index),
    };
    Cpu {
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
        cpu: ring.cpu.into(),
        zero: 0.into(),
    }
}
