// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arithmetic and logic with an operand in memory, flags included (AMD APM vol. 3, chapter 3).

use iced_x86::{Instruction, OpKind};

use super::{MemoryBus, Refused, Step, VectorFile, register};
use crate::addr::AccessSize;
use crate::machine::walk::Purpose;
use crate::memory::GuestMemory;
use crate::vcpu::{Rflags, VcpuState};

pub(super) const CARRY: u64 = 1 << 0;
pub(super) const PARITY: u64 = 1 << 2;
pub(super) const AUXILIARY: u64 = 1 << 4;
pub(super) const ZERO: u64 = 1 << 6;
pub(super) const SIGN: u64 = 1 << 7;
pub(super) const OVERFLOW: u64 = 1 << 11;
pub(super) const ALL: u64 = CARRY | PARITY | AUXILIARY | ZERO | SIGN | OVERFLOW;

/// An operation with two operands, by the manual's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Operation {
    And,
    Or,
    Xor,
    Add,
    Adc,
    Sub,
    Sbb,
    Test,
    Cmp,
}

/// An operation with one operand, by the manual's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Unary {
    Inc,
    Dec,
    Neg,
    Not,
}

impl<V: VcpuState + ?Sized, M: GuestMemory + ?Sized, B: MemoryBus + VectorFile> Step<'_, V, M, B> {
    /// An operation with two operands.
    pub(super) fn arithmetic(&mut self, operation: Operation) -> Result<(), Refused> {
        let memory_is_first = self.instruction.op0_kind() == OpKind::Memory;
        let other = self.source(u32::from(memory_is_first))?;
        let is_stored = memory_is_first && operation.keeps_result();
        let span = self.operand(if is_stored { Purpose::Write } else { Purpose::Read })?;
        let loaded = self.load(span);
        let (left, right) = if memory_is_first { (loaded, other) } else { (other, loaded) };
        let (result, flags) = operation.compute(left, right, self.has_flag(CARRY), self.size);
        self.set_flags(ALL, flags);
        if is_stored {
            self.store(span, result);
        } else if operation.keeps_result() {
            register::of(self.instruction, 0)?.write(self.vcpu, result);
        }
        Ok(())
    }

    /// INC, DEC, NEG or NOT.
    pub(super) fn unary(&mut self, operation: Unary) -> Result<(), Refused> {
        let span = self.operand(Purpose::Write)?;
        let old = self.load(span);
        let (changed, (result, flags)) = match operation {
            Unary::Inc => (ALL & !CARRY, Operation::Add.compute(old, 1, false, self.size)),
            Unary::Dec => (ALL & !CARRY, Operation::Sub.compute(old, 1, false, self.size)),
            Unary::Neg => (ALL, Operation::Sub.compute(0, old, false, self.size)),
            Unary::Not => (0, (!old & self.size.mask(), 0)),
        };
        self.set_flags(changed, flags);
        self.store(span, result);
        Ok(())
    }

    /// Returns whether a flag is set.
    pub(super) fn has_flag(&self, flag: u64) -> bool {
        self.vcpu.rflags().bits() & flag != 0
    }

    /// Gives the flags in `changed` the values that they have in `flags`.
    pub(super) fn set_flags(&mut self, changed: u64, flags: u64) {
        let kept = self.vcpu.rflags().bits() & !changed;
        self.vcpu.set_rflags(Rflags::from_bits_retain(kept | flags & changed));
    }
}

impl Operation {
    fn keeps_result(self) -> bool {
        !matches!(self, Self::Test | Self::Cmp)
    }

    /// The result and the flags; both operands fit `size`.
    pub(super) fn compute(self, left: u64, right: u64, carry: bool, size: AccessSize) -> (u64, u64) {
        let carry_in = carry && matches!(self, Self::Adc | Self::Sbb);
        let (result, flags) = match self {
            Self::And | Self::Test => (left & right, 0),
            Self::Or => (left | right, 0),
            Self::Xor => (left ^ right, 0),
            Self::Add | Self::Adc => {
                let sum = left.wrapping_add(right).wrapping_add(carry_in.into()) & size.mask();
                let is_carried = sum < left || carry_in && sum == left;
                let overflow = (left ^ sum) & (right ^ sum) & sign(size) != 0;
                (sum, flag(is_carried, CARRY) | flag(overflow, OVERFLOW))
            }
            Self::Sub | Self::Sbb | Self::Cmp => {
                let difference = left.wrapping_sub(right).wrapping_sub(carry_in.into()) & size.mask();
                let is_borrowed = left < right || carry_in && left == right;
                let overflow = (left ^ right) & (left ^ difference) & sign(size) != 0;
                (difference, flag(is_borrowed, CARRY) | flag(overflow, OVERFLOW))
            }
        };
        let is_logical = matches!(self, Self::And | Self::Test | Self::Or | Self::Xor);
        let auxiliary = !is_logical && (left ^ right ^ result) & 0x10 != 0;
        (result, flags | flag(auxiliary, AUXILIARY) | result_flags(result, size))
    }
}

/// The flags that depend on the result alone.
pub(super) fn result_flags(result: u64, size: AccessSize) -> u64 {
    flag(result == 0, ZERO)
        | flag(result & sign(size) != 0, SIGN)
        | flag((result as u8).count_ones().is_multiple_of(2), PARITY)
}

/// The uppermost bit.
pub(super) fn sign(size: AccessSize) -> u64 {
    size.mask() & !(size.mask() >> 1)
}

pub(super) fn flag(condition: bool, bit: u64) -> u64 {
    if condition { bit } else { 0 }
}

/// Returns whether the condition of CMOVcc or SETcc is met (AMD APM vol. 3, table 1-5): every other one is the negation
/// of the one before.
pub(super) fn is_met(instruction: &Instruction, rflags: Rflags) -> bool {
    let code = (instruction.condition_code() as u8).saturating_sub(1);
    let has = |flags: u64| rflags.bits() & flags != 0;
    let is_less = has(SIGN) != has(OVERFLOW);
    let is_met = match code >> 1 {
        0 => has(OVERFLOW),
        1 => has(CARRY),
        2 => has(ZERO),
        3 => has(CARRY | ZERO),
        4 => has(SIGN),
        5 => has(PARITY),
        6 => is_less,
        _ => is_less || has(ZERO),
    };
    is_met != (code & 1 != 0)
}
