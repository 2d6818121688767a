// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory for guests, and back. A guest never sees data of an earlier owner. Memory that is not known to hold zeros is
//! cleared before the guest's kernel is loaded. Memory that it leaves is scrubbed by an idle CPU, so that the next
//! guest need not wait for that.

use firmware::Tables;
use frames::{FrameRange, GuestFrames, Node, OutOfMemory, PageSize};

use super::background::{self, ScrubPause};
use crate::arch::guest_memory::FrameSource;
use crate::arch::memory::FRAMES;
use crate::arch::{cpu, percpu};

/// The frames of every guest.
pub static FRAME_SOURCE: FrameSource = FrameSource { allocate, release };

/// The number of checks whether the pieces being scrubbed are back: far longer than any takes.
const CHECKS: u32 = 100_000_000;

/// Memory for a guest in one piece, in huge frames of 1 GiB where it is that much, near `node`.
fn allocate(bytes: u64, node: Option<Node>) -> Result<GuestFrames, OutOfMemory> {
    // Pieces that are being scrubbed have no owner, but cannot be allocated: they may be in the wanted place.
    let _pause = ScrubPause::begin();
    for _ in 0..CHECKS {
        if !FRAMES.lock().is_scrubbing() {
            break;
        }
        cpu::pause();
    }
    let mut frames = FRAMES.lock();
    let gib = if bytes >= PageSize::Gib1.bytes() {
        frames.allocate_for_guest(bytes, PageSize::Gib1, node).ok()
    } else {
        None
    };
    gib.map_or_else(|| frames.allocate_for_guest(bytes, PageSize::Mib2, node), Ok)
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
