// SPDX-License-Identifier: MIT OR Apache-2.0
//! Instructions that touch device registers in memory: decoded, carried out on a bus, written back.
//!
//! Compilers and kernels reach device registers with moves, a few with arithmetic on memory or string instructions; those
//! are all here. Anything else is refused by name, and the caller decides what becomes of the guest.

mod alu;
mod kind;
mod recent;
mod register;
mod string;

use iced_x86::{Code, Instruction, OpKind};

use self::kind::Kind;
use crate::addr::{AccessSize, Gpa};
use crate::instruction;
use crate::memory::GuestMemory;
use crate::vcpu::{Exception, Gpr, VcpuState};

pub use self::recent::Recent;
pub use self::register::write_sized as write_register;
pub use self::string::port_string;

/// Where loads and stores of an emulated instruction go.
pub trait MemoryBus {
    /// What a load sees.
    fn load(&mut self, gpa: Gpa, size: AccessSize) -> u64;
    /// A store.
    fn store(&mut self, gpa: Gpa, size: AccessSize, value: u64);
}

/// Why an instruction was not carried out; the guest's state is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The guest gets this exception.
    Exception(Exception),
    /// An instruction that has no business with device registers.
    Unsupported(Code),
}

impl From<Exception> for Refused {
    fn from(exception: Exception) -> Self {
        Self::Exception(exception)
    }
}

/// An instruction that touches memory, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    instruction: Instruction,
    kind: Kind,
    size: AccessSize,
}

/// The instruction at RIP.
///
/// # Errors
/// It cannot be read, or is none that is carried out here.
pub fn decode(
    vcpu: &impl VcpuState,
    memory: &(impl GuestMemory + ?Sized),
    recent: &mut Recent,
) -> Result<Access, Refused> {
    let bytes = instruction::fetch(vcpu, memory)?;
    let bitness = instruction::bitness(vcpu);
    if let Some(access) = recent.find(&bytes, bitness, vcpu.rip()) {
        return Ok(access);
    }
    let instruction = instruction::decode(vcpu, &bytes).ok_or(Exception::InvalidOpcode)?;
    let (kind, size) = kind::of(&instruction)?;
    let access = Access { instruction, kind, size };
    recent.keep(bytes, bitness, access);
    Ok(access)
}

/// Carries out the instruction at RIP, whose memory operand the processor found at `gpa`, and moves RIP on.
pub fn access(
    vcpu: &mut impl VcpuState,
    memory: &(impl GuestMemory + ?Sized),
    gpa: Gpa,
    Access { instruction, kind, size }: &Access,
    bus: &mut impl MemoryBus,
) -> Result<(), Refused> {
    let at = (gpa, *size);
    match *kind {
        Kind::Move => mov(vcpu, instruction, at, bus)?,
        Kind::ZeroExtend => extend(vcpu, instruction, at, bus, |value, _| value)?,
        Kind::SignExtend | Kind::SignExtendDoubleword => extend(vcpu, instruction, at, bus, sign_extend)?,
        Kind::Store => return string::store(vcpu, instruction, at, bus),
        Kind::Copy => return string::copy(vcpu, memory, instruction, at, bus),
        Kind::Exchange => alu::exchange(vcpu, instruction, at, bus)?,
        Kind::Arithmetic(operation) => alu::access(vcpu, instruction, operation, at, bus)?,
    }
    vcpu.set_rip(instruction.next_ip());
    Ok(())
}

/// Carries out the MOV to CR8 at RIP and moves RIP on. A priority of more than four bits is #GP.
pub fn write_task_priority(vcpu: &mut impl VcpuState, memory: &(impl GuestMemory + ?Sized)) -> Result<(), Refused> {
    let bytes = instruction::fetch(vcpu, memory)?;
    let instruction = instruction::decode_task_priority_write(vcpu, &bytes).ok_or(Exception::InvalidOpcode)?;
    let value = register::of(&instruction, 1)?.read(vcpu);
    let priority = u8::try_from(value).ok().filter(|priority| *priority <= 0xf);
    vcpu.set_task_priority(priority.ok_or(Exception::GeneralProtection(0))?);
    vcpu.set_rip(instruction.next_ip());
    Ok(())
}

fn mov(
    vcpu: &mut impl VcpuState,
    instruction: &Instruction,
    (gpa, size): (Gpa, AccessSize),
    bus: &mut impl MemoryBus,
) -> Result<(), Refused> {
    if instruction.op0_kind() == OpKind::Register {
        let target = register::of(instruction, 0)?;
        let value = bus.load(gpa, size);
        target.write(vcpu, value);
    } else {
        let value = source(vcpu, instruction, 1)?;
        bus.store(gpa, size, value & size.mask());
    }
    Ok(())
}

fn extend(
    vcpu: &mut impl VcpuState,
    instruction: &Instruction,
    (gpa, size): (Gpa, AccessSize),
    bus: &mut impl MemoryBus,
    widen: impl Fn(u64, AccessSize) -> u64,
) -> Result<(), Refused> {
    let target = register::of(instruction, 0)?;
    let value = bus.load(gpa, size);
    target.write(vcpu, widen(value & size.mask(), size));
    Ok(())
}

fn sign_extend(value: u64, size: AccessSize) -> u64 {
    let unused = 64 - 8 * size.bytes() as u32;
    ((value << unused) as i64 >> unused) as u64
}

/// The value of a register or immediate operand.
fn source(vcpu: &impl VcpuState, instruction: &Instruction, operand: u32) -> Result<u64, Refused> {
    match instruction.op_kind(operand) {
        OpKind::Register => Ok(register::of(instruction, operand)?.read(vcpu)),
        OpKind::Memory => Err(Refused::Unsupported(instruction.code())),
        _ => instruction.try_immediate(operand).map_err(|_| Refused::Unsupported(instruction.code())),
    }
}

/// Counts RCX (in the instruction's address width) down by one; says whether a repeated instruction goes on.
fn count_down(vcpu: &mut impl VcpuState, address_size: AccessSize) -> bool {
    let left = vcpu.gpr_sized(Gpr::Rcx, address_size).wrapping_sub(1) & address_size.mask();
    register::write_sized(vcpu, Gpr::Rcx, address_size, left);
    left != 0
}

#[cfg(test)]
mod tests;
