// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading the record, by the image that it is for.

use arrayvec::ArrayString;
use boot::{BootInfo, MapBuilder, Module, RegionKind};
use handover::RecordError;
use handover::layout::{Purpose, Reason, unpadded};
use handover::record::Record;
use seal::PublicKey;
use units::{PhysAddr, PhysRange};

use super::channel_state::channel_state;
use super::record::{FILES, KNOWN, Known, PREVIOUS_BUNDLE, RECORD};
use crate::arch::boot::{self as entry, BootMemory};
use crate::arch::timer::Rates;
use crate::arch::{clock, timer};

/// Reads the record at `at`, notes the slot that it names as this image's, and continues the clock.
///
/// # Errors
/// Why the record cannot be used.
pub fn take_over(at: PhysAddr) -> Result<BootInfo, RecordError> {
    let unreadable = RecordError::BadLength(0);
    let header = BootMemory.bytes(at.0, size_of::<handover::layout::Header>() as u64).ok_or(unreadable)?;
    let bytes = BootMemory.bytes(at.0, Record::bytes(header)? as u64).ok_or(unreadable)?;
    let record = Record::open(bytes)?;
    entry::note_slot(record.slot().start(), record.slot().bytes());
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
    *PREVIOUS_BUNDLE.lock() = record.kept_for(Purpose::PreviousBundle).next();
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
        signer: record.signer.map(|signer| PublicKey::from_bytes(signer.key)),
        channel_state: channel_state(record),
        cpus: record.cpus.len() as u32,
        confirm_within_s: record.deadline.map(|deadline| deadline.seconds.get()),
        is_update: record.host.reason.get() == Reason::Update as u32,
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
