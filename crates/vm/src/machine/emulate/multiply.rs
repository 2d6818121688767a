// SPDX-License-Identifier: MIT OR Apache-2.0
//! MUL, IMUL, DIV and IDIV with an operand in memory (AMD APM vol. 3, chapter 3).

use iced_x86::OpKind;

use super::alu::{CARRY, OVERFLOW, flag};
use super::{MemoryBus, Refused, Step, VectorFile, register, sign_extend};
use crate::addr::AccessSize;
use crate::machine::walk::Purpose;
use crate::memory::GuestMemory;
use crate::vcpu::{Exception, Gpr, VcpuState};

/// Signedness of the operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Sign {
    Signed,
    Unsigned,
}

impl<V: VcpuState + ?Sized, M: GuestMemory + ?Sized, B: MemoryBus + VectorFile> Step<'_, V, M, B> {
    /// MUL or IMUL, with one, two or three operands. CF and OF: the product needs more than the lower half.
    pub(super) fn multiply(&mut self, sign: Sign) -> Result<(), Refused> {
        let has_one_operand = self.instruction.op0_kind() == OpKind::Memory;
        let other = match self.instruction.op2_kind() {
            _ if has_one_operand => self.vcpu.gpr_sized(Gpr::Rax, self.size),
            // There is none: this is what the decoder leaves in its place.
            OpKind::Register => self.source(0)?,
            _ => self.source(2)?,
        };
        let span = self.operand(Purpose::Read)?;
        let loaded = self.load(span);
        let product = widen(loaded, sign, self.size).wrapping_mul(widen(other, sign, self.size));
        let low = product as u64 & self.size.mask();
        let is_cut = widen(low, sign, self.size) != product;
        self.set_flags(CARRY | OVERFLOW, flag(is_cut, CARRY | OVERFLOW));
        if has_one_operand {
            self.set_pair(low, (product >> (8 * self.size.bytes())) as u64);
        } else {
            register::of(self.instruction, 0)?.write(self.vcpu, low);
        }
        Ok(())
    }

    /// DIV or IDIV. #DE: the divisor is zero, or the quotient does not fit. Flags are undefined after it, and stay.
    pub(super) fn divide(&mut self, sign: Sign) -> Result<(), Refused> {
        let span = self.operand(Purpose::Read)?;
        let divisor = widen(self.load(span), sign, self.size);
        let bits = 8 * self.size.bytes() as u32;
        let dividend = self.pair();
        let (quotient, remainder) = match sign {
            Sign::Unsigned => {
                let (dividend, divisor) = (dividend, divisor as u128);
                let quotient = dividend.checked_div(divisor).ok_or(Exception::DivideError)?;
                (quotient as i128, (dividend - quotient * divisor) as i128)
            }
            Sign::Signed => {
                let unused = 128 - 2 * bits;
                let dividend = (dividend << unused) as i128 >> unused;
                let quotient = dividend.checked_div(divisor).ok_or(Exception::DivideError)?;
                (quotient, dividend.wrapping_sub(quotient.wrapping_mul(divisor)))
            }
        };
        let kept = quotient as u64 & self.size.mask();
        if widen(kept, sign, self.size) != quotient {
            return Err(Exception::DivideError.into());
        }
        self.set_pair(kept, remainder as u64 & self.size.mask());
        Ok(())
    }

    /// rDX:rAX, or AX for bytes.
    fn pair(&self) -> u128 {
        if self.size == AccessSize::Byte {
            return self.vcpu.gpr_sized(Gpr::Rax, AccessSize::Word).into();
        }
        let high = u128::from(self.vcpu.gpr_sized(Gpr::Rdx, self.size));
        high << (8 * self.size.bytes()) | u128::from(self.vcpu.gpr_sized(Gpr::Rax, self.size))
    }

    fn set_pair(&mut self, low: u64, high: u64) {
        if self.size == AccessSize::Byte {
            register::write_sized(self.vcpu, Gpr::Rax, AccessSize::Word, high << 8 | low);
        } else {
            register::write_sized(self.vcpu, Gpr::Rax, self.size, low);
            register::write_sized(self.vcpu, Gpr::Rdx, self.size, high);
        }
    }
}

fn widen(value: u64, sign: Sign, size: AccessSize) -> i128 {
    match sign {
        Sign::Signed => i128::from(sign_extend(value, size) as i64),
        Sign::Unsigned => i128::from(value),
    }
}
