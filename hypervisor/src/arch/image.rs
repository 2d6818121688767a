// SPDX-License-Identifier: MIT OR Apache-2.0
//! The image's place: linked at one virtual address, it runs from any physical one.

use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use handover::image::LINKED_AT;
use units::{PhysAddr, PhysRange};

use super::address::{IMAGE, boot_only_start, boot_stack_end, boot_stack_start, image_end, image_start};

/// Distance in bytes of the image from its link address: its slot's address less 2 MiB.
static MOVED_BY: AtomicU64 = AtomicU64::new(0);
/// True once [`MOVED_BY`] is known.
static IS_PLACED: AtomicBool = AtomicBool::new(false);

/// Notes that the image lies in the slot at this address.
pub fn place(slot: PhysAddr) {
    MOVED_BY.store(slot.0.wrapping_sub(LINKED_AT), Ordering::Relaxed);
    IS_PLACED.store(true, Ordering::Relaxed);
}

/// Returns true once the image's place is known. An image that replaces another one reads it in the record, which the
/// other one has put beside it.
pub fn is_placed() -> bool {
    IS_PLACED.load(Ordering::Relaxed)
}

/// The physical address of what the linker puts at `linked`, which is no address in the virtual image.
pub fn physical_of_linked(linked: u64) -> u64 {
    linked.wrapping_add(MOVED_BY.load(Ordering::Relaxed))
}

/// The physical address of what is at `address` in the image.
pub fn physical(address: u64) -> u64 {
    physical_of_linked(address - IMAGE)
}

/// The image's frames: never part of the direct map, but for what only the boot needs once that is given back. The
/// memory right behind them may be a loader's module.
pub fn frames() -> PhysRange {
    frames_of(image_start()..image_end())
}

/// The part of the image that only the boot needs, its last: page tables and the boot stack.
pub fn boot_only() -> Range<u64> {
    boot_only_start()..boot_stack_end()
}

/// The frames of that part.
pub fn boot_only_frames() -> PhysRange {
    frames_of(boot_only())
}

/// The frames of the boot stack.
pub fn boot_stack_frames() -> PhysRange {
    frames_of(boot_stack())
}

/// The boot stack in the image.
pub fn boot_stack() -> Range<u64> {
    boot_stack_start()..boot_stack_end()
}

fn frames_of(range: Range<u64>) -> PhysRange {
    let (start, end) = (PhysAddr(physical(range.start)), PhysAddr(physical(range.end)));
    PhysRange::new(start, end).unwrap_or_else(|| unreachable!("a part of the image ends after its start"))
}
