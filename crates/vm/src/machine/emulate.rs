// SPDX-License-Identifier: MIT OR Apache-2.0
//! Emulates instructions that access device registers in memory: decodes, loads and stores, writes results back.
//!
//! Compilers and kernels access device registers with moves, some with arithmetic, bit operations, string instructions
//! or vector moves. Those are emulated here. Any other instruction is refused by name, and the caller decides about the
//! guest.
//!
//! All parts of all operands are translated before the first of them is loaded: a device register may change by being
//! read, and an instruction that faults must not have done anything.

mod access;
mod address;
mod alu;
mod bits;
mod compare_exchange;
mod kind;
mod multiply;
mod operand;
mod recent;
mod refused;
mod register;
mod shift;
mod stack;
mod step;
mod string;
mod vector;
mod vector_file;
mod vector_move;

use iced_x86::OpKind;

use self::kind::Kind;
use self::step::{Step, next_rip, sign_extend};
use crate::addr::{AccessSize, Gpa};
use crate::machine::instruction;
use crate::machine::walk::Purpose;
use crate::memory::GuestMemory;
use crate::vcpu::{Exception, Gpr, VcpuState};

pub use self::access::Access;
pub use self::recent::Recent;
pub use self::refused::Refused;
pub use self::register::write_sized as write_register;
pub use self::step::MemoryBus;
pub use self::string::{PortString, port_string};
pub use self::vector_file::{VectorFile, VectorWrite};

/// Decodes the instruction at RIP.
///
/// # Errors
/// It cannot be read, or it is not emulated.
pub fn decode(
    vcpu: &(impl VcpuState + ?Sized),
    memory: &(impl GuestMemory + ?Sized),
    recent: &mut Recent,
) -> Result<Access, Refused> {
    let bytes = instruction::fetch(vcpu, memory)?;
    let bitness = instruction::bitness(vcpu);
    if let Some(access) = recent.find(&bytes, bitness, vcpu.rip()) {
        return Ok(access);
    }
    let access = match vector::decode(&bytes, bitness, vcpu.rip())? {
        Some(access) => access,
        None => {
            let instruction = instruction::decode(vcpu, &bytes).ok_or(Exception::InvalidOpcode)?;
            let (kind, size) = kind::of(&instruction)?;
            Access { instruction, kind, size }
        }
    };
    recent.keep(bytes, bitness, access);
    Ok(access)
}

/// Emulates the instruction at RIP, for which the CPU found no memory at `gpa`, and moves RIP on.
pub fn access(
    vcpu: &mut (impl VcpuState + ?Sized),
    memory: &(impl GuestMemory + ?Sized),
    gpa: Gpa,
    Access { instruction, kind, size }: &Access,
    bus: &mut (impl MemoryBus + VectorFile),
) -> Result<(), Refused> {
    let mut step = Step { vcpu, memory, bus, instruction, size: *size, fault: gpa };
    match *kind {
        Kind::Move => step.mov()?,
        Kind::MoveSwapped => step.mov_swapped()?,
        Kind::ZeroExtend => step.extend(|value, _| value)?,
        Kind::SignExtend => step.extend(sign_extend)?,
        Kind::Arithmetic(operation) => step.arithmetic(operation)?,
        other => return step.erased().seldom(other),
    }
    step.finish();
    Ok(())
}

/// Emulates the MOV to CR8 at RIP and moves RIP on. Decodes it unless the CPU reports the `source` and where the
/// instruction ends. A priority of more than four bits is #GP.
pub fn write_task_priority(
    vcpu: &mut (impl VcpuState + ?Sized),
    memory: &(impl GuestMemory + ?Sized),
    source: Option<Gpr>,
) -> Result<(), Refused> {
    let (value, next_rip) = match source.zip(vcpu.next_rip()) {
        Some((source, next_rip)) => {
            let size = if instruction::bitness(vcpu) == 64 { AccessSize::Qword } else { AccessSize::Dword };
            (vcpu.gpr_sized(source, size), next_rip)
        }
        None => decoded_task_priority(vcpu, memory)?,
    };
    let priority = u8::try_from(value).ok().filter(|priority| *priority <= 0xf);
    vcpu.set_task_priority(priority.ok_or(Exception::GeneralProtection(0))?);
    vcpu.set_rip(next_rip);
    Ok(())
}

/// The value that the MOV to CR8 at RIP moves, and where it ends.
fn decoded_task_priority(
    vcpu: &(impl VcpuState + ?Sized),
    memory: &(impl GuestMemory + ?Sized),
) -> Result<(u64, u64), Refused> {
    let bytes = instruction::fetch(vcpu, memory)?;
    let instruction = instruction::decode_task_priority_write(vcpu, &bytes).ok_or(Exception::InvalidOpcode)?;
    Ok((register::of(&instruction, 1)?.read(vcpu), instruction.next_ip()))
}

impl<V: VcpuState + ?Sized, M: GuestMemory + ?Sized, B: MemoryBus + VectorFile> Step<'_, V, M, B> {
    /// The same for code that is seldom executed.
    fn erased(&mut self) -> Step<'_, dyn VcpuState, M, B> {
        let Self { vcpu, memory, bus, instruction, size, fault } = self;
        Step { vcpu: vcpu.erased(), memory, bus, instruction, size: *size, fault: *fault }
    }

    /// The kinds that drivers seldom use on device registers: kept out of the path of the others.
    #[cold]
    fn seldom(mut self, kind: Kind) -> Result<(), Refused> {
        match kind {
            Kind::ConditionalMove => self.conditional_move()?,
            Kind::ConditionalSet => self.conditional_set()?,
            Kind::Exchange => self.exchange()?,
            Kind::ExchangeAdd => self.exchange_add()?,
            Kind::CompareExchange => self.compare_exchange()?,
            Kind::CompareExchangePair => self.compare_exchange_pair()?,
            Kind::Unary(operation) => self.unary(operation)?,
            Kind::Shift(shift) => self.shift(shift)?,
            Kind::DoubleShift(direction) => self.double_shift(direction)?,
            Kind::Bit(operation) => self.bit(operation)?,
            Kind::BitScan(scan) => self.bit_scan(scan)?,
            Kind::Multiply(sign) => self.multiply(sign)?,
            Kind::Divide(sign) => self.divide(sign)?,
            Kind::Push => self.push()?,
            Kind::Pop => self.pop()?,
            Kind::Vector(part) => self.vector(part)?,
            Kind::String(string) => return self.string(string),
            Kind::Move | Kind::MoveSwapped | Kind::ZeroExtend | Kind::SignExtend | Kind::Arithmetic(_) => {}
        }
        self.finish();
        Ok(())
    }

    /// Moves RIP past the instruction.
    #[inline]
    fn finish(&mut self) {
        let next = next_rip(self.instruction);
        self.vcpu.set_rip(next);
    }

    /// MOV and MOVNTI.
    #[inline]
    fn mov(&mut self) -> Result<(), Refused> {
        if self.instruction.op0_kind() == OpKind::Register {
            let target = register::of(self.instruction, 0)?;
            let span = self.operand(Purpose::Read)?;
            let value = self.load(span);
            target.write(self.vcpu, value);
        } else {
            let value = self.source(1)?;
            let span = self.operand(Purpose::Write)?;
            self.store(span, value);
        }
        Ok(())
    }

    /// MOVBE.
    fn mov_swapped(&mut self) -> Result<(), Refused> {
        let swapped = |value: u64, size: AccessSize| value.swap_bytes() >> (64 - 8 * size.bytes());
        if self.instruction.op0_kind() == OpKind::Register {
            let target = register::of(self.instruction, 0)?;
            let span = self.operand(Purpose::Read)?;
            let value = self.load(span);
            target.write(self.vcpu, swapped(value, self.size));
        } else {
            let value = self.source(1)?;
            let span = self.operand(Purpose::Write)?;
            self.store(span, swapped(value, self.size));
        }
        Ok(())
    }

    /// MOVZX, MOVSX and MOVSXD.
    fn extend(&mut self, widen: impl Fn(u64, AccessSize) -> u64) -> Result<(), Refused> {
        let target = register::of(self.instruction, 0)?;
        let span = self.operand(Purpose::Read)?;
        let value = self.load(span);
        target.write(self.vcpu, widen(value, self.size));
        Ok(())
    }

    /// CMOVcc: the load takes place whatever the condition, and a 32-bit register's upper half is cleared.
    fn conditional_move(&mut self) -> Result<(), Refused> {
        let target = register::of(self.instruction, 0)?;
        let span = self.operand(Purpose::Read)?;
        let loaded = self.load(span);
        let value = if alu::is_met(self.instruction, self.vcpu.rflags()) { loaded } else { target.read(self.vcpu) };
        target.write(self.vcpu, value);
        Ok(())
    }

    /// SETcc.
    fn conditional_set(&mut self) -> Result<(), Refused> {
        let span = self.operand(Purpose::Write)?;
        let is_met = alu::is_met(self.instruction, self.vcpu.rflags());
        self.store(span, is_met.into());
        Ok(())
    }

    /// The value of a register or immediate operand, in the width of the operand in memory.
    fn source(&self, operand: u32) -> Result<u64, Refused> {
        let unsupported = Refused::Unsupported(self.instruction.code());
        let value = match self.instruction.op_kind(operand) {
            OpKind::Register => register::of(self.instruction, operand)?.read(self.vcpu),
            OpKind::Memory => return Err(unsupported),
            _ => self.instruction.try_immediate(operand).map_err(|_| unsupported)?,
        };
        Ok(value & self.size.mask())
    }
}

#[cfg(test)]
mod tests;
