// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine's memory, by `frames`: what the boot hands to the ledger, guests' memory, and what idle CPUs do for
//! it.
//!
//! | module | content |
//! |---|---|
//! | this one | from the memory map to a ledger, in the order of the boot |
//! | [`records`] | a record per frame, by the policy chosen |
//! | [`guests`] | memory for guests, and back |
//! | [`retired`] | damaged memory, from one image to the next |
//! | [`background`] | records that were deferred, and what guests have left: for an idle CPU |

pub mod background;
pub mod guests;
mod records;
pub mod retired;

use arrayvec::ArrayVec;
use boot::options::Options;
use boot::{BootInfo, MAXIMUM_REGIONS};
use firmware::Tables;
use firmware::tables::MAX_MEMORY_AFFINITIES;
use frames::nodes::{NodeMap, NodeRange};
use frames::{Frames, LEDGER_BYTES, PageSize, find_room};
use handover::layout::guests::MemoryUse;
use handover::record::Record;
use units::{ByteSize, MIB, PhysAddr, PhysRange};

use crate::arch::address::BOOT_MAPPED_BYTES;
use crate::arch::memory::{self, FRAMES};
use crate::arch::{cpu, ending, image};
use crate::kernel::timeline::{self, Name};

/// Bytes of an ACPI root pointer (ACPI 6.5, section 5.2.5.3).
const RSDP_BYTES: u64 = 36;

/// Memory that is not set aside for guests, however many huge frames are wanted: the host, its tables, the next image.
const HOST_BYTES: u64 = 64 * MIB;
/// The part of all memory, and its bounds, that guests leave to the host while it runs: for heap and tables, for files
/// that are sent, for the next image.
const HOST_PART: u64 = 64;
const LEAST_HOST_BYTES: u64 = 4 * MIB;

/// The record of the image before, unless a loader started this one.
type Before<'a> = Option<&'a Record<'static>>;

/// Opens the ledger: all usable memory is free but the image, the modules, what the image before wants kept, and the
/// ledger's own. Returns whether there is room for an epitaph.
pub fn open(info: &BootInfo, options: &Options, before: Before<'_>) -> bool {
    let _span = timeline::span(Name::Frames, 0);
    let window = PhysRange::new(PhysAddr(MIB), PhysAddr(BOOT_MAPPED_BYTES)).unwrap_or_default();
    let room = find_room(&usable(info), window, LEDGER_BYTES, &|range| overlap(info, options, before, range));
    let Some(room) = room else {
        panic!("no memory for the ledger of memory below 4 GiB; give the machine more memory")
    };
    memory::open_ledger(room);
    let mut frames = FRAMES.lock();
    add_all(&mut frames, info, options, PhysRange::default());
    retired::adopt(&mut frames, retired_ranges(before));
    in_use(info).chain(kept(before)).chain([room]).for_each(|range| reserve(&mut frames, range));
    reserve_epitaph(&mut frames, info)
}

/// Opens the ledger of an image on trial: what it was given in advance is free, nothing else.
pub fn open_on_trial(staging_memory: PhysRange) {
    let Some(room) = find_room(&[staging_memory], staging_memory, LEDGER_BYTES, &|_| None) else {
        panic!("no memory for the ledger of memory: the image before gave too little")
    };
    memory::open_ledger(room);
    let mut frames = FRAMES.lock();
    if let Err(error) = frames.add_free(staging_memory) {
        panic!("memory {staging_memory} cannot be used: {error}");
    }
    reserve(&mut frames, room);
}

/// An image that was on trial owns all memory, but for what guests have (`on_demand`: what they have so) and what is
/// still to be read. Returns whether there is room for an epitaph.
pub fn take_all(
    info: &BootInfo,
    options: &Options,
    staging_memory: PhysRange,
    before: Before<'_>,
    on_demand: &[PhysRange],
) -> bool {
    let mut frames = FRAMES.lock();
    add_all(&mut frames, info, options, staging_memory);
    retired::adopt(&mut frames, retired_ranges(before));
    let kept = kept(before).filter(|kept| *kept != staging_memory);
    in_use(info).chain(kept).for_each(|range| reserve(&mut frames, range));
    let keep_for_guest = |range| {
        if let Err(error) = frames.keep_for_guest(range) {
            panic!("memory {range} cannot be a guest's: {error}");
        }
    };
    guest_memory(before).chain(on_demand.iter().copied()).for_each(keep_for_guest);
    reserve_epitaph(&mut frames, info)
}

/// All usable memory is free but what the operator or the image before calls damaged. `known` has been added before.
fn add_all(frames: &mut Frames<'static>, info: &BootInfo, options: &Options, known: PhysRange) {
    let parts = |range: PhysRange| {
        let below = PhysRange::new(range.start(), range.end().min(known.start().max(range.start())));
        let above = PhysRange::new(range.start().max(known.end()), range.end());
        below.into_iter().chain(above).filter(|part| !part.is_empty())
    };
    for range in info.memory_map.usable().flat_map(parts) {
        if let Err(error) = frames.add_free(range) {
            log::warn!("memory {range} is not used: {error}");
        }
    }
    for range in options.bad_memory.ranges() {
        match frames.retire(range) {
            Ok(0) => log::warn!("option bad-memory: {range} is no usable memory"),
            Ok(bytes) => log::info!("memory {range} is damaged: {} are not used", ByteSize(bytes)),
            Err(error) => log::error!("memory {range} is damaged, and used all the same: {error}"),
        }
    }
}

/// Memory that must not be allocated.
fn kept(before: Before<'_>) -> impl Iterator<Item = PhysRange> + use<> {
    before.map(Record::kept_ranges).into_iter().flatten()
}

/// Memory that the image before has retired.
fn retired_ranges(before: Before<'_>) -> impl Iterator<Item = PhysRange> + use<> {
    before.map(Record::retired_ranges).into_iter().flatten()
}

/// Memory of guests that go on.
fn guest_memory(before: Before<'_>) -> impl Iterator<Item = PhysRange> + use<> {
    let pieces = before.map(|record| record.guest_memory.iter()).into_iter().flatten();
    let pieces = pieces.filter(|piece| piece.purpose.get() == MemoryUse::Memory as u32);
    pieces.filter_map(|piece| PhysRange::from_start(PhysAddr(piece.start.get()), piece.bytes.get()))
}

fn reserve(frames: &mut Frames<'static>, range: PhysRange) {
    if let Err(error) = frames.reserve(range) {
        panic!("memory {range} cannot be reserved: {error}");
    }
}

fn reserve_epitaph(frames: &mut Frames<'static>, info: &BootInfo) -> bool {
    let epitaph = ending::epitaph_frames();
    let is_usable = info.memory_map.usable().any(|usable| usable.contains_range(epitaph));
    let is_taken = info.modules.iter().any(|module| module.range.intersection(epitaph).is_some());
    is_usable && !is_taken && frames.reserve(epitaph).is_ok()
}

/// All usable memory.
fn usable(info: &BootInfo) -> ArrayVec<PhysRange, MAXIMUM_REGIONS> {
    info.memory_map.usable().collect()
}

/// Modules, the image, the first page, and the ACPI root pointer, of which a loader may give a copy in memory that
/// would be free.
fn in_use(info: &BootInfo) -> impl Iterator<Item = PhysRange> + '_ {
    let first = PhysRange::new(PhysAddr(0), PhysAddr(4096));
    let root_pointer = info.rsdp.and_then(|rsdp| PhysRange::from_start(rsdp, RSDP_BYTES));
    info.modules.iter().map(|module| module.range).chain([image::frames()]).chain(root_pointer).chain(first)
}

/// A part of `range` in which the ledger cannot be.
fn overlap(info: &BootInfo, options: &Options, before: Before<'_>, range: PhysRange) -> Option<PhysRange> {
    let taken = in_use(info).chain(kept(before)).chain([ending::epitaph_frames()]);
    let damaged = options.bad_memory.ranges().chain(retired_ranges(before));
    taken.chain(damaged).find_map(|taken| taken.intersection(range))
}

/// Nodes, huge frames for guests, and records. Once all memory is mapped and there is a heap.
pub fn furnish(info: &BootInfo, options: &Options, tables: &Tables, is_update: bool) {
    let _span = timeline::span(Name::FrameRecords, 0);
    let start = cpu::tsc();
    set_nodes(info, tables);
    leave_to_host();
    for (size, wanted) in [(PageSize::Gib1, options.huge_frames.gib1), (PageSize::Mib2, options.huge_frames.mib2)] {
        if wanted > 0 {
            set_aside(size, u64::from(wanted));
        }
    }
    records::keep(options.frames, options.hvo, is_update);
    let written = FRAMES.lock().written_bytes();
    let ticks = cpu::tsc() - start;
    log::debug!("{:?}, hvo {}: {written} bytes in {ticks} cycles at boot", options.frames, options.hvo);
}

fn leave_to_host() {
    let mut frames = FRAMES.lock();
    let bytes = (frames.total_bytes() / HOST_PART).clamp(LEAST_HOST_BYTES, HOST_BYTES);
    frames.leave_to_host(bytes);
}

fn set_nodes(info: &BootInfo, tables: &Tables) {
    let usable = usable(info);
    let is_there = |range: PhysRange| usable.iter().any(|usable| usable.intersection(range).is_some());
    let mut claims: ArrayVec<NodeRange, MAX_MEMORY_AFFINITIES> = ArrayVec::new();
    for affinity in &tables.memory_affinities {
        let range = PhysRange::from_start(PhysAddr(affinity.base), affinity.bytes).unwrap_or_default();
        // Memory that can be plugged in need not be there.
        if !affinity.is_hot_pluggable || is_there(range) {
            claims.push(NodeRange { range, node: affinity.node });
        }
    }
    let (nodes, contradictions) = NodeMap::build(&claims, &usable);
    contradictions.kept().iter().for_each(|contradiction| log::warn!("NUMA nodes: {contradiction}"));
    if contradictions.more() > 0 {
        log::warn!("NUMA nodes: {} more contradictions between SRAT and memory map", contradictions.more());
    }
    if nodes.count() > 1 {
        log::info!("{} NUMA nodes", nodes.count());
    }
    FRAMES.lock().set_nodes(nodes);
}

fn set_aside(size: PageSize, wanted: u64) {
    let mut frames = FRAMES.lock();
    let kept = frames.set_aside_of_guests(size, wanted);
    match frames.set_aside(size, wanted - kept, HOST_BYTES) {
        Ok(()) => log::info!("{wanted} huge frames of {size} are set aside for guests"),
        Err(shortage) => log::warn!("option huge-frames: {shortage}"),
    }
}
