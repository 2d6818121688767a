// SPDX-License-Identifier: MIT OR Apache-2.0
//! PUSH and POP with an operand in memory: two operands in memory, each of which may be device registers.

use super::address::Logical;
use super::operand::locate;
use super::{MemoryBus, Refused, Step, VectorFile, address, register};
use crate::addr::AccessSize;
use crate::machine::instruction;
use crate::machine::walk::Purpose;
use crate::memory::GuestMemory;
use crate::vcpu::{AccessRights, Gpr, SegmentName, VcpuState};

impl<V: VcpuState + ?Sized, M: GuestMemory + ?Sized, B: MemoryBus + VectorFile> Step<'_, V, M, B> {
    /// PUSH.
    pub(super) fn push(&mut self) -> Result<(), Refused> {
        let bytes = self.size.bytes();
        let stack_size = stack_size(self.vcpu);
        let pointer = self.vcpu.gpr_sized(Gpr::Rsp, stack_size).wrapping_sub(bytes as u64) & stack_size.mask();
        let from = address::of(self.vcpu, self.instruction, 0, 0)?;
        let from = locate(self.vcpu, self.memory, from, bytes, Purpose::Read)?;
        let stack = Logical { segment: SegmentName::Ss, offset: pointer };
        let stack = locate(self.vcpu, self.memory, stack, bytes, Purpose::Write)?;
        self.confirm(&[from, stack])?;
        let value = self.load(from);
        self.store(stack, value);
        register::write_sized(self.vcpu, Gpr::Rsp, stack_size, pointer);
        Ok(())
    }

    /// POP. Its operand's address is computed with RSP behind what is popped.
    pub(super) fn pop(&mut self) -> Result<(), Refused> {
        let bytes = self.size.bytes();
        let stack_size = stack_size(self.vcpu);
        let pointer = self.vcpu.gpr_sized(Gpr::Rsp, stack_size);
        let stack = Logical { segment: SegmentName::Ss, offset: pointer };
        let stack = locate(self.vcpu, self.memory, stack, bytes, Purpose::Read)?;
        let into = address::of(self.vcpu, self.instruction, 0, bytes as u64)?;
        let into = locate(self.vcpu, self.memory, into, bytes, Purpose::Write)?;
        self.confirm(&[into, stack])?;
        let value = self.load(stack);
        self.store(into, value);
        register::write_sized(self.vcpu, Gpr::Rsp, stack_size, pointer.wrapping_add(bytes as u64));
        Ok(())
    }
}

/// The width of the stack pointer.
fn stack_size(vcpu: &(impl VcpuState + ?Sized)) -> AccessSize {
    if instruction::bitness(vcpu) == 64 {
        AccessSize::Qword
    } else if vcpu.segment(SegmentName::Ss).rights.contains(AccessRights::DEFAULT_32) {
        AccessSize::Dword
    } else {
        AccessSize::Word
    }
}
