// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stacks: where they are, and whether an address is on one or under one. Only the boot stack is given back, together
//! with the boot page tables that no other CPU needs.

use core::arch::asm;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use frames::FrameRange;
use paging::Flags;

use super::address::{DIRECT_MAP, INTERRUPT_STACK_BYTES, INTERRUPT_STACK_STRIDE, INTERRUPT_STACKS, STACK_BYTES};
use super::address::{STACK_STRIDE, STACKS, image_end, image_start};
use super::memory::{self, MemoryError};
use super::{boot, image};

/// Stacks of one size, one behind the other, what is under each not mapped.
struct Area {
    start: u64,
    stride: u64,
    bytes: u64,
    count: AtomicU64,
}

static CPUS: Area = Area { start: STACKS, stride: STACK_STRIDE, bytes: STACK_BYTES, count: AtomicU64::new(0) };
static INTERRUPTS: Area = Area {
    start: INTERRUPT_STACKS,
    stride: INTERRUPT_STACK_STRIDE,
    bytes: INTERRUPT_STACK_BYTES,
    count: AtomicU64::new(0),
};

/// The boot stack's frames are free, or have another owner.
static IS_BOOT_STACK_GONE: AtomicBool = AtomicBool::new(false);

impl Area {
    fn add(&self) -> Result<u64, MemoryError> {
        let bottom = self.bottom(self.count.fetch_add(1, Ordering::Relaxed));
        memory::map_new(bottom, self.bytes, Flags::WRITABLE | Flags::NO_EXECUTE | Flags::GLOBAL)?;
        Ok(bottom + self.bytes)
    }

    fn bottom(&self, number: u64) -> u64 {
        self.start + number * self.stride + self.stride - self.bytes
    }

    /// Returns the stack with this address in its place, including the unmapped pages under it.
    fn at(&self, address: u64) -> Option<Range<u64>> {
        let number = address.checked_sub(self.start)? / self.stride;
        let is_one = number < self.count.load(Ordering::Relaxed);
        is_one.then(|| self.bottom(number)..self.bottom(number) + self.bytes)
    }
}

/// Maps a new stack for a CPU with a guard page under it; returns its top.
pub fn new_stack() -> Result<u64, MemoryError> {
    CPUS.add()
}

/// Maps a new stack for one kind of exception of a CPU, with a guard page under it; returns its top. Nothing runs
/// on it but the exception's report.
pub fn new_interrupt_stack() -> Result<u64, MemoryError> {
    INTERRUPTS.add()
}

/// The stack that `pointer` is on: the boot stack or one of those made here.
pub fn stack_around(pointer: u64) -> Option<Range<u64>> {
    if !IS_BOOT_STACK_GONE.load(Ordering::Relaxed) && image::boot_stack().contains(&pointer) {
        return Some(image::boot_stack());
    }
    [&CPUS, &INTERRUPTS].iter().find_map(|area| area.at(pointer)).filter(|stack| stack.contains(&pointer))
}

/// Returns whether `address` is in the guard page (or the gap) under one of the stacks.
pub fn is_stack_guard(address: u64) -> bool {
    [&CPUS, &INTERRUPTS].iter().filter_map(|area| area.at(address)).any(|stack| address < stack.start)
}

/// Bytes of memory that the image holds: all of its segments, but for what only the boot needs once that is given back.
pub fn image_bytes() -> u64 {
    let boot_only = image::boot_only();
    let given_back = if IS_BOOT_STACK_GONE.load(Ordering::Relaxed) { boot_only.end - boot_only.start } else { 0 };
    image_end() - image_start() - given_back
}

/// Leaves the current stack for good and goes on in `next` on another one.
pub fn continue_on(stack_top: u64, next: extern "C" fn() -> !) -> ! {
    // SAFETY: the stack was just made and has no other user; `next` never returns, so nothing on the old one is used
    // again. RBP = 0 ends backtraces.
    unsafe { asm!("mov rsp, {}", "xor ebp, ebp", "call {}", "ud2", in(reg) stack_top, in(reg) next, options(noreturn)) }
}

/// Frees the frames of the boot stack and of boot page tables that no other CPU needs to start, which are the image's
/// last: they leave the image's addresses for the direct map. On the boot CPU, once it has left that stack for good and
/// the ledger has the memory that the image lies in. No other CPU has ever been on the stack, so a translation that
/// others still hold does no harm.
pub fn give_back_boot_memory() {
    let (addresses, frames) = (image::boot_only(), image::boot_only_frames());
    boot::keep_first_directory();
    let flags = Flags::WRITABLE | Flags::NO_EXECUTE | Flags::GLOBAL;
    let moved = memory::with_host_tables(|tables, tables_frames| {
        tables.unmap(tables_frames, addresses.start, frames.bytes())?;
        tables.map(tables_frames, DIRECT_MAP + frames.start().0, frames.start(), frames.bytes(), flags)
    });
    memory::flush_translations();
    IS_BOOT_STACK_GONE.store(true, Ordering::Relaxed);
    match moved {
        Some(Ok(())) => {
            FrameRange::adopt(frames).into_iter().for_each(memory::release);
            log::debug!("memory {frames} was only needed to boot: it is free");
        }
        refused => log::error!("memory {frames}, only needed to boot, stays the image's: {refused:?}"),
    }
}
