// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shifts and rotates of an operand in memory (AMD APM vol. 3, chapter 3), bit by bit: there are at most 63 steps.
//!
//! OF is defined for counts of one only; for others it is what the last step leaves, as on CPUs that shift in steps.

use iced_x86::OpKind;

use super::alu::{AUXILIARY, CARRY, OVERFLOW, PARITY, SIGN, ZERO, flag, result_flags, sign};
use super::{MemoryBus, Refused, Step, VectorFile, register};
use crate::addr::AccessSize;
use crate::machine::walk::Purpose;
use crate::memory::GuestMemory;
use crate::vcpu::{Gpr, VcpuState};

/// A shift or rotate, by the manual's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Shift {
    Rol,
    Ror,
    Rcl,
    Rcr,
    Shl,
    Shr,
    Sar,
}

/// Direction of SHLD and SHRD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Direction {
    Left,
    Right,
}

/// An operand and the carry flag on their way through the steps.
#[derive(Clone, Copy)]
struct Shifted {
    value: u64,
    carry: bool,
}

impl<V: VcpuState + ?Sized, M: GuestMemory + ?Sized, B: MemoryBus + VectorFile> Step<'_, V, M, B> {
    /// A shift or rotate.
    pub(super) fn shift(&mut self, shift: Shift) -> Result<(), Refused> {
        let count = self.shift_count(1)?;
        let span = self.operand(Purpose::Write)?;
        let mut shifted = Shifted { value: self.load(span), carry: self.has_flag(CARRY) };
        let mut overflow = false;
        for _ in 0..count {
            let before = shifted;
            shifted = shift.once(before, self.size);
            overflow = shift.overflows(before, shifted, self.size);
        }
        let is_rotate = matches!(shift, Shift::Rol | Shift::Ror | Shift::Rcl | Shift::Rcr);
        self.set_shift_flags(count, shifted, overflow, if is_rotate { 0 } else { SIGN | ZERO | PARITY | AUXILIARY });
        self.store(span, shifted.value);
        Ok(())
    }

    /// SHLD or SHRD.
    pub(super) fn double_shift(&mut self, direction: Direction) -> Result<(), Refused> {
        let count = self.shift_count(2)?;
        let mut other = self.source(1)?;
        let span = self.operand(Purpose::Write)?;
        let mut shifted = Shifted { value: self.load(span), carry: self.has_flag(CARRY) };
        let mut overflow = false;
        let top = sign(self.size);
        for _ in 0..count {
            let before = shifted.value;
            shifted = match direction {
                Direction::Left => {
                    let value = before << 1 & self.size.mask() | u64::from(other & top != 0);
                    other = other << 1 & self.size.mask() | u64::from(other & top != 0);
                    Shifted { value, carry: before & top != 0 }
                }
                Direction::Right => {
                    let value = before >> 1 | flag(other & 1 != 0, top);
                    other = other >> 1 | flag(other & 1 != 0, top);
                    Shifted { value, carry: before & 1 != 0 }
                }
            };
            overflow = (before ^ shifted.value) & top != 0;
        }
        self.set_shift_flags(count, shifted, overflow, SIGN | ZERO | PARITY | AUXILIARY);
        self.store(span, shifted.value);
        Ok(())
    }

    /// Returns how far to shift: CL or an immediate, five bits of it, or six for 64-bit operands.
    fn shift_count(&self, operand: u32) -> Result<u32, Refused> {
        let count = match self.instruction.op_kind(operand) {
            OpKind::Register => register::of(self.instruction, operand)?.read(self.vcpu),
            OpKind::Immediate8 => self.instruction.immediate8().into(),
            // The form that shifts by one has no operand for the count.
            _ if operand == 1 => 1,
            _ => self.vcpu.gpr(Gpr::Rcx),
        };
        Ok(count as u32 & if self.size == AccessSize::Qword { 63 } else { 31 })
    }

    /// A count of zero changes no flag.
    fn set_shift_flags(&mut self, count: u32, shifted: Shifted, overflow: bool, others: u64) {
        if count > 0 {
            let flags = flag(shifted.carry, CARRY) | flag(overflow, OVERFLOW) | result_flags(shifted.value, self.size);
            self.set_flags(CARRY | OVERFLOW | others, flags);
        }
    }
}

impl Shift {
    fn once(self, Shifted { value, carry }: Shifted, size: AccessSize) -> Shifted {
        let (top, is_top_set, is_low_set) = (sign(size), value & sign(size) != 0, value & 1 != 0);
        let left = |low: bool| Shifted { value: value << 1 & size.mask() | u64::from(low), carry: is_top_set };
        let right = |high: bool| Shifted { value: value >> 1 | flag(high, top), carry: is_low_set };
        match self {
            Self::Rol => left(is_top_set),
            Self::Rcl => left(carry),
            Self::Shl => left(false),
            Self::Ror => right(is_low_set),
            Self::Rcr => right(carry),
            Self::Shr => right(false),
            Self::Sar => right(is_top_set),
        }
    }

    /// OF after one step.
    fn overflows(self, before: Shifted, after: Shifted, size: AccessSize) -> bool {
        let is_top_set = after.value & sign(size) != 0;
        match self {
            Self::Rol | Self::Rcl | Self::Shl => is_top_set != after.carry,
            Self::Ror | Self::Rcr => is_top_set != (after.value & sign(size) >> 1 != 0),
            Self::Shr => before.value & sign(size) != 0,
            Self::Sar => false,
        }
    }
}
