// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory for guests, and back. A guest never sees data of an earlier owner. Memory that is not known to hold zeros is
//! cleared before the guest's kernel is loaded. Memory that it leaves is scrubbed by an idle CPU, so that the next
//! guest need not wait for that.

use core::sync::atomic::{AtomicU64, Ordering};

use demand::Claim;
use firmware::Tables;
use frames::{FrameRange, Frames, GuestFrames, Node, OutOfMemory, PageSize};

use super::background::{self, ScrubPause};
use crate::arch::guest_memory::FrameSource;
use crate::arch::memory::FRAMES;
use crate::arch::{cpu, percpu};

/// The frames of every guest.
pub static FRAME_SOURCE: FrameSource = FrameSource { allocate, release, block, may_be_parted, assure, change_assured };

/// Bytes that guests with memory on demand were assured and do not have yet.
static ASSURED_BYTES: AtomicU64 = AtomicU64::new(0);
/// Free memory that guests leave, which get more than they were assured: for devices that cannot wait.
const LEFT_TO_DEVICES: u64 = 32 << 20;

/// The number of checks whether the pieces being scrubbed are back: far longer than any takes.
const CHECKS: u32 = 100_000_000;

/// Memory for a guest in one piece, in huge frames of 1 GiB where it is that much, near `node`.
fn allocate(bytes: u64, node: Option<Node>) -> Result<GuestFrames, OutOfMemory> {
    let _pause = pause_scrubbing();
    let mut frames = FRAMES.lock();
    leaves_assured(&frames, bytes)?;
    let gib = if bytes >= PageSize::Gib1.bytes() {
        frames.allocate_for_guest(bytes, PageSize::Gib1, node).ok()
    } else {
        None
    };
    gib.map_or_else(|| frames.allocate_for_guest(bytes, PageSize::Mib2, node), Ok)
}

/// Pieces that are being scrubbed have no owner, but cannot be allocated: they may be in the wanted place.
fn pause_scrubbing() -> ScrubPause {
    let pause = ScrubPause::begin();
    for _ in 0..CHECKS {
        if !FRAMES.lock().is_scrubbing() {
            break;
        }
        cpu::pause();
    }
    pause
}

/// Refuses what would leave less free memory than other guests were assured.
fn leaves_assured(frames: &Frames<'_>, bytes: u64) -> Result<(), OutOfMemory> {
    let left_bytes = frames.free_for_guests_bytes().saturating_sub(ASSURED_BYTES.load(Ordering::Relaxed));
    let (free_bytes, largest_bytes) = (left_bytes, left_bytes);
    let short = OutOfMemory { bytes, alignment: PageSize::Mib2, limit: None, free_bytes, largest_bytes };
    match bytes <= left_bytes {
        true => Ok(()),
        false => Err(short),
    }
}

/// The frame of a block.
fn block(claim: Claim, node: Option<Node>) -> Option<GuestFrames> {
    let bytes = demand::BLOCK_BYTES;
    let left_bytes = match claim {
        Claim::Assured => return allocate_assured(bytes, node),
        Claim::More => LEFT_TO_DEVICES,
        Claim::Device => 0,
    };
    leaves_assured(&FRAMES.lock(), bytes + left_bytes).ok()?;
    allocate(bytes, node).ok()
}

fn allocate_assured(bytes: u64, node: Option<Node>) -> Option<GuestFrames> {
    let _pause = pause_scrubbing();
    FRAMES.lock().allocate_for_guest(bytes, PageSize::Mib2, node).ok()
}

fn may_be_parted() -> bool {
    FRAMES.lock().may_be_parted()
}

fn assure(bytes: u64) -> Result<(), OutOfMemory> {
    let frames = FRAMES.lock();
    leaves_assured(&frames, bytes)?;
    change_assured(bytes, true);
    Ok(())
}

fn change_assured(bytes: u64, is_more: bool) {
    match is_more {
        true => ASSURED_BYTES.fetch_add(bytes, Ordering::Relaxed),
        false => ASSURED_BYTES.fetch_sub(bytes, Ordering::Relaxed),
    };
}

/// Releases a guest's memory.
fn release(range: FrameRange) {
    let bytes = range.bytes();
    if let Err(error) = FRAMES.lock().free_from_guest(range) {
        log::error!("frames: {error}");
    }
    background::scrub(bytes);
}

/// The NUMA node of a CPU, where there are several.
pub fn node_of(cpu: u32, tables: &Tables) -> Option<Node> {
    let apic_id = percpu::of(cpu)?.apic_id;
    let node = tables.cpus.iter().find(|known| known.apic_id == apic_id)?.node;
    (tables.proximity_domains.len() > 1).then_some(node)
}
