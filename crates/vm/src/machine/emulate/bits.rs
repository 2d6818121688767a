// SPDX-License-Identifier: MIT OR Apache-2.0
//! Single bits of an operand in memory: BT and its kin, and the instructions that search or count bits.

use iced_x86::OpKind;

use super::alu::{ALL, CARRY, ZERO, flag};
use super::{MemoryBus, Refused, Step, VectorFile, register, sign_extend};
use crate::machine::walk::Purpose;
use crate::memory::GuestMemory;
use crate::vcpu::VcpuState;

/// Operation on the bit, by the manual's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum BitOperation {
    Bt,
    Bts,
    Btr,
    Btc,
}

/// Kind of scan, by the manual's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum BitScan {
    Bsf,
    Bsr,
    Tzcnt,
    Lzcnt,
    Popcnt,
}

impl<V: VcpuState + ?Sized, M: GuestMemory + ?Sized, B: MemoryBus + VectorFile> Step<'_, V, M, B> {
    /// BT, BTS, BTR or BTC. A bit offset in a register is signed and may lead out of the operand that the address
    /// names.
    pub(super) fn bit(&mut self, operation: BitOperation) -> Result<(), Refused> {
        let (bytes, bits) = (self.size.bytes() as u64, 8 * self.size.bytes() as u64);
        let offset = self.source(1)?;
        let is_register = self.instruction.op1_kind() == OpKind::Register;
        let operands = if is_register { sign_extend(offset, self.size) as i64 >> bits.trailing_zeros() } else { 0 };
        let displacement = (operands as u64).wrapping_mul(bytes);
        let purpose = if operation == BitOperation::Bt { Purpose::Read } else { Purpose::Write };
        let span = self.operand_of(bytes as usize, displacement, purpose)?;
        let (value, bit) = (self.load(span), 1 << (offset % bits));
        self.set_flags(CARRY, flag(value & bit != 0, CARRY));
        match operation {
            BitOperation::Bt => {}
            BitOperation::Bts => self.store(span, value | bit),
            BitOperation::Btr => self.store(span, value & !bit),
            BitOperation::Btc => self.store(span, value ^ bit),
        }
        Ok(())
    }

    /// BSF, BSR, TZCNT, LZCNT or POPCNT. BSF and BSR of zero leave the register as it is (AMD APM vol. 3).
    pub(super) fn bit_scan(&mut self, scan: BitScan) -> Result<(), Refused> {
        let target = register::of(self.instruction, 0)?;
        let span = self.operand(Purpose::Read)?;
        let value = self.load(span);
        let bits = 8 * self.size.bytes() as u32;
        let leading = value.leading_zeros() - (64 - bits);
        let (changed, result) = match scan {
            BitScan::Bsf => (ZERO, value.trailing_zeros()),
            BitScan::Bsr => (ZERO, (bits - 1).wrapping_sub(leading)),
            BitScan::Tzcnt => (ZERO | CARRY, value.trailing_zeros().min(bits)),
            BitScan::Lzcnt => (ZERO | CARRY, leading),
            BitScan::Popcnt => (ALL, value.count_ones()),
        };
        let is_search = matches!(scan, BitScan::Bsf | BitScan::Bsr);
        let is_zero = if is_search { value == 0 } else { result == 0 };
        let carry = flag(value == 0 && scan != BitScan::Popcnt, CARRY);
        self.set_flags(changed, flag(is_zero, ZERO) | carry);
        if !(is_search && value == 0) {
            target.write(self.vcpu, result.into());
        }
        Ok(())
    }
}
