// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arithmetic and logic with a device register as one operand, flags included (AMD APM vol. 3, chapter 3).

use iced_x86::{Instruction, OpKind};

use super::{MemoryBus, Refused, register, source};
use crate::addr::{AccessSize, Gpa};
use crate::vcpu::{Rflags, VcpuState};

const CARRY: u64 = 1 << 0;
const PARITY: u64 = 1 << 2;
const AUXILIARY: u64 = 1 << 4;
const ZERO: u64 = 1 << 6;
const SIGN: u64 = 1 << 7;
const OVERFLOW: u64 = 1 << 11;
const ALL: u64 = CARRY | PARITY | AUXILIARY | ZERO | SIGN | OVERFLOW;

/// XCHG.
pub fn exchange(
    vcpu: &mut impl VcpuState,
    instruction: &Instruction,
    (gpa, size): (Gpa, AccessSize),
    bus: &mut impl MemoryBus,
) -> Result<(), Refused> {
    let target = register::of(instruction, u32::from(instruction.op0_kind() == OpKind::Memory))?;
    let (old, new) = (bus.load(gpa, size), target.read(vcpu) & size.mask());
    bus.store(gpa, size, new);
    target.write(vcpu, old);
    Ok(())
}

/// One of AND, OR, XOR, ADD, SUB, TEST and CMP.
pub fn access(
    vcpu: &mut impl VcpuState,
    instruction: &Instruction,
    operation: Operation,
    (gpa, size): (Gpa, AccessSize),
    bus: &mut impl MemoryBus,
) -> Result<(), Refused> {
    let memory_is_first = instruction.op0_kind() == OpKind::Memory;
    let other = source(vcpu, instruction, u32::from(memory_is_first))? & size.mask();
    let loaded = bus.load(gpa, size) & size.mask();
    let (left, right) = if memory_is_first { (loaded, other) } else { (other, loaded) };
    let (result, flags) = operation.compute(left, right, size);
    let kept = vcpu.rflags().bits() & !ALL;
    vcpu.set_rflags(Rflags::from_bits_retain(kept | flags));
    if operation.keeps_result() {
        if memory_is_first {
            bus.store(gpa, size, result);
        } else {
            register::of(instruction, 0)?.write(vcpu, result);
        }
    }
    Ok(())
}

/// What is computed, by the manual's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Operation {
    And,
    Or,
    Xor,
    Add,
    Sub,
    Test,
    Cmp,
}

impl Operation {
    fn keeps_result(self) -> bool {
        !matches!(self, Self::Test | Self::Cmp)
    }

    /// The result and the flags; both operands fit `size`.
    fn compute(self, left: u64, right: u64, size: AccessSize) -> (u64, u64) {
        let sign = size.mask() & !(size.mask() >> 1);
        let (result, flags) = match self {
            Self::And | Self::Test => (left & right, 0),
            Self::Or => (left | right, 0),
            Self::Xor => (left ^ right, 0),
            Self::Add => {
                let sum = left.wrapping_add(right) & size.mask();
                let overflow = (left ^ sum) & (right ^ sum) & sign != 0;
                (sum, flag(sum < left, CARRY) | flag(overflow, OVERFLOW))
            }
            Self::Sub | Self::Cmp => {
                let difference = left.wrapping_sub(right) & size.mask();
                let overflow = (left ^ right) & (left ^ difference) & sign != 0;
                (difference, flag(left < right, CARRY) | flag(overflow, OVERFLOW))
            }
        };
        let auxiliary = matches!(self, Self::Add | Self::Sub | Self::Cmp) && (left ^ right ^ result) & 0x10 != 0;
        let flags = flags
            | flag(auxiliary, AUXILIARY)
            | flag(result == 0, ZERO)
            | flag(result & sign != 0, SIGN)
            | flag((result as u8).count_ones().is_multiple_of(2), PARITY);
        (result, flags)
    }
}

fn flag(condition: bool, bit: u64) -> u64 {
    if condition { bit } else { 0 }
}
