// SPDX-License-Identifier: MIT OR Apache-2.0
//! Register operands of any width.

use iced_x86::{Instruction, Register};

use super::Refused;
use crate::addr::AccessSize;
use crate::vcpu::{Gpr, VcpuState};

const GPRS: [Gpr; 16] = [
    Gpr::Rax,
    Gpr::Rcx,
    Gpr::Rdx,
    Gpr::Rbx,
    Gpr::Rsp,
    Gpr::Rbp,
    Gpr::Rsi,
    Gpr::Rdi,
    Gpr::R8,
    Gpr::R9,
    Gpr::R10,
    Gpr::R11,
    Gpr::R12,
    Gpr::R13,
    Gpr::R14,
    Gpr::R15,
];

/// A general purpose register as an instruction names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operand {
    gpr: Gpr,
    size: AccessSize,
    /// AH, CH, DH, BH.
    is_high_byte: bool,
}

/// The general purpose register that a register of any width is, or is part of.
#[inline]
pub fn gpr(register: Register) -> Option<Gpr> {
    if register.is_gpr() { GPRS.get(register.full_register().number()).copied() } else { None }
}

/// The register that operand `index` names; refused if it is not a general purpose one.
#[inline]
pub fn of(instruction: &Instruction, index: u32) -> Result<Operand, Refused> {
    let register = instruction.op_register(index);
    let refused = Refused::Unsupported(instruction.code());
    let size = AccessSize::from_bytes(register.size()).ok_or(refused)?;
    let is_high_byte = matches!(register, Register::AH | Register::CH | Register::DH | Register::BH);
    let gpr = gpr(register).ok_or(refused)?;
    Ok(Operand { gpr, size, is_high_byte })
}

impl Operand {
    /// Its value, zero-extended.
    #[inline]
    pub fn read(self, vcpu: &(impl VcpuState + ?Sized)) -> u64 {
        let shift = if self.is_high_byte { 8 } else { 0 };
        vcpu.gpr(self.gpr) >> shift & self.size.mask()
    }

    /// Writes it: 32-bit writes clear the upper half, narrower ones leave the rest alone.
    pub fn write(self, vcpu: &mut (impl VcpuState + ?Sized), value: u64) {
        if self.is_high_byte {
            let old = vcpu.gpr(self.gpr);
            vcpu.set_gpr(self.gpr, old & !0xff00 | (value & 0xff) << 8);
        } else {
            write_sized(vcpu, self.gpr, self.size, value);
        }
    }
}

/// Writes the low `size` bits of a register as an instruction of that width would.
#[inline]
pub fn write_sized(vcpu: &mut (impl VcpuState + ?Sized), gpr: Gpr, size: AccessSize, value: u64) {
    let kept = match size {
        AccessSize::Byte | AccessSize::Word => vcpu.gpr(gpr) & !size.mask(),
        AccessSize::Dword | AccessSize::Qword => 0,
    };
    vcpu.set_gpr(gpr, kept | value & size.mask());
}
