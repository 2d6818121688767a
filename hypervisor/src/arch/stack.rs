// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stacks: where they are, and whether an address is on one or under one. None is given back.

use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};

use paging::Flags;

use super::address::{self, INTERRUPT_STACK_BYTES, INTERRUPT_STACK_STRIDE, INTERRUPT_STACKS, STACK_BYTES};
use super::address::{STACK_STRIDE, STACKS};
use super::memory::{self, MemoryError};

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

impl Area {
    fn add(&self) -> Result<u64, MemoryError> {
        let bottom = self.bottom(self.count.fetch_add(1, Ordering::Relaxed));
        memory::map_new(bottom, self.bytes, Flags::WRITABLE | Flags::NO_EXECUTE | Flags::GLOBAL)?;
        Ok(bottom + self.bytes)
    }

    fn bottom(&self, number: u64) -> u64 {
        self.start + number * self.stride + self.stride - self.bytes
    }

    /// The stack in whose place the address is, with what is not mapped under it.
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
    if (address::data_start()..address::data_end()).contains(&pointer) {
        return Some(address::data_start()..address::data_end());
    }
    [&CPUS, &INTERRUPTS].iter().find_map(|area| area.at(pointer)).filter(|stack| stack.contains(&pointer))
}

/// Returns whether `address` is in the guard page (or the gap) under one of the stacks.
pub fn is_stack_guard(address: u64) -> bool {
    [&CPUS, &INTERRUPTS].iter().filter_map(|area| area.at(address)).any(|stack| address < stack.start)
}
