// SPDX-License-Identifier: MIT OR Apache-2.0
//! XCHG, XADD and CMPXCHG with memory. No other vCPU's access to device registers comes between the load and the store
//! of one of these on the same device register that could not come before or after it: registers of devices are no
//! place for locks.

use iced_x86::{Code, OpKind};

use super::alu::{ALL, Operation, ZERO, flag};
use super::operand::locate;
use super::{MemoryBus, Refused, Step, VectorFile, address, register};
use crate::addr::AccessSize;
use crate::machine::walk::Purpose;
use crate::memory::GuestMemory;
use crate::vcpu::{Exception, Gpr, VcpuState};

impl<V: VcpuState + ?Sized, M: GuestMemory + ?Sized, B: MemoryBus + VectorFile> Step<'_, V, M, B> {
    /// XCHG.
    pub(super) fn exchange(&mut self) -> Result<(), Refused> {
        let target = register::of(self.instruction, u32::from(self.instruction.op0_kind() == OpKind::Memory))?;
        let new = target.read(self.vcpu);
        let span = self.operand(Purpose::Write)?;
        let old = self.load(span);
        self.store(span, new);
        target.write(self.vcpu, old);
        Ok(())
    }

    /// XADD.
    pub(super) fn exchange_add(&mut self) -> Result<(), Refused> {
        let other = register::of(self.instruction, 1)?;
        let added = other.read(self.vcpu);
        let span = self.operand(Purpose::Write)?;
        let old = self.load(span);
        let (sum, flags) = Operation::Add.compute(old, added, false, self.size);
        self.set_flags(ALL, flags);
        self.store(span, sum);
        other.write(self.vcpu, old);
        Ok(())
    }

    /// CMPXCHG. Where the comparison fails, what was loaded is stored again.
    pub(super) fn compare_exchange(&mut self) -> Result<(), Refused> {
        let new = self.source(1)?;
        let span = self.operand(Purpose::Write)?;
        let old = self.load(span);
        let expected = self.vcpu.gpr_sized(Gpr::Rax, self.size);
        let (_, flags) = Operation::Cmp.compute(expected, old, false, self.size);
        self.set_flags(ALL, flags);
        if expected == old {
            self.store(span, new);
        } else {
            self.store(span, old);
            register::write_sized(self.vcpu, Gpr::Rax, self.size, old);
        }
        Ok(())
    }

    /// CMPXCHG8B or CMPXCHG16B: two halves, each as wide as `size`.
    pub(super) fn compare_exchange_pair(&mut self) -> Result<(), Refused> {
        let half = self.size.bytes();
        let span = if half == AccessSize::Qword.bytes() {
            let at = address::of(self.vcpu, self.instruction, 0, 0)?;
            if address::checked(self.vcpu, at, 2 * half, Purpose::Write)? % 16 != 0 {
                return Err(Exception::GeneralProtection(0).into());
            }
            let span = locate(self.vcpu, self.memory, at, 2 * half, Purpose::Write)?;
            self.confirm(&[span])?;
            span
        } else {
            self.operand_of(2 * half, 0, Purpose::Write)?
        };
        let old = [self.load(span), self.load(span.behind(half))];
        let pair = |low, high| [self.vcpu.gpr_sized(low, self.size), self.vcpu.gpr_sized(high, self.size)];
        let (expected, new) = (pair(Gpr::Rax, Gpr::Rdx), pair(Gpr::Rbx, Gpr::Rcx));
        let is_equal = expected == old;
        self.set_flags(ZERO, flag(is_equal, ZERO));
        let [low, high] = if is_equal { new } else { old };
        self.store(span, low);
        self.store(span.behind(half), high);
        if !is_equal {
            register::write_sized(self.vcpu, Gpr::Rax, self.size, low);
            register::write_sized(self.vcpu, Gpr::Rdx, self.size, high);
        }
        Ok(())
    }
}

/// The width of one half of what CMPXCHG8B or CMPXCHG16B compares.
pub(super) fn half(code: Code) -> AccessSize {
    if code == Code::Cmpxchg16b_m128 { AccessSize::Qword } else { AccessSize::Dword }
}
