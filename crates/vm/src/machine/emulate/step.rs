// SPDX-License-Identifier: MIT OR Apache-2.0
//! The environment of every kind of instruction.

use iced_x86::{CodeSize, Instruction};

use crate::addr::{AccessSize, Gpa};

/// Receiver of an emulated instruction's loads and stores that reach no memory.
pub trait MemoryBus {
    /// The value that a load returns.
    fn load(&mut self, gpa: Gpa, size: AccessSize) -> u64;
    /// Stores a value.
    fn store(&mut self, gpa: Gpa, size: AccessSize, value: u64);
}

/// One instruction under way.
pub(super) struct Step<'a, V: ?Sized, M: ?Sized, B> {
    pub(super) vcpu: &'a mut V,
    pub(super) memory: &'a M,
    pub(super) bus: &'a mut B,
    pub(super) instruction: &'a Instruction,
    pub(super) size: AccessSize,
    /// The address at which the CPU found no memory.
    pub(super) fault: Gpa,
}

/// The value in 64 bits, its sign kept.
pub(super) fn sign_extend(value: u64, size: AccessSize) -> u64 {
    let unused = 64 - 8 * size.bytes() as u32;
    ((value << unused) as i64 >> unused) as u64
}

/// RIP behind an instruction; outside 64-bit mode it has 32 bits.
#[inline]
pub(super) fn next_rip(instruction: &Instruction) -> u64 {
    let next = instruction.next_ip();
    if instruction.code_size() == CodeSize::Code64 { next } else { next & 0xffff_ffff }
}
