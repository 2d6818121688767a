// SPDX-License-Identifier: MIT OR Apache-2.0
//! String instructions: STOS and MOVS on device registers, INS and OUTS on ports.
//!
//! A repeated instruction is carried out one step at a time: RIP stays at it until the count is used up, so that interrupts
//! come in between as they would on the processor.

use iced_x86::{Code, Instruction, OpKind, Register};

use super::{MemoryBus, Refused, count_down, register};
use crate::addr::{AccessSize, Gpa};
use crate::exit::PortAccess;
use crate::instruction;
use crate::memory::GuestMemory;
use crate::vcpu::{Exception, Gpr, Rflags, SegmentName, VcpuState};
use crate::walk::{Purpose, translate};

const PAGE: u64 = 4096;

/// STOS: one step.
pub fn store(
    vcpu: &mut impl VcpuState,
    instruction: &Instruction,
    (gpa, size): (Gpa, AccessSize),
    bus: &mut impl MemoryBus,
) -> Result<(), Refused> {
    let address_size = address_size(instruction)?;
    bus.store(gpa, size, vcpu.gpr_sized(Gpr::Rax, size));
    advance(vcpu, Gpr::Rdi, size, address_size);
    finish(vcpu, instruction, address_size);
    Ok(())
}

/// MOVS between a device register at `gpa` and memory (or another device register): one step.
pub fn copy(
    vcpu: &mut impl VcpuState,
    memory: &(impl GuestMemory + ?Sized),
    instruction: &Instruction,
    (gpa, size): (Gpa, AccessSize),
    bus: &mut impl MemoryBus,
) -> Result<(), Refused> {
    let address_size = address_size(instruction)?;
    let source = linear(vcpu, instruction.memory_segment(), Gpr::Rsi, address_size);
    let target = linear(vcpu, Register::ES, Gpr::Rdi, address_size);
    let source = contiguous(vcpu, memory, source, size, Purpose::Read, instruction.code())?;
    let target = contiguous(vcpu, memory, target, size, Purpose::Write, instruction.code())?;
    if source != gpa && target != gpa {
        // The guest has changed its page tables or its registers' meaning since the fault: let it try again.
        return Ok(());
    }
    let mut bytes = [0; 8];
    let value = match memory.read(source, &mut bytes[..size.bytes()]) {
        Ok(()) => u64::from_le_bytes(bytes),
        Err(_) => bus.load(source, size),
    };
    if memory.write(target, &value.to_le_bytes()[..size.bytes()]).is_err() {
        bus.store(target, size, value & size.mask());
    }
    advance(vcpu, Gpr::Rsi, size, address_size);
    advance(vcpu, Gpr::Rdi, size, address_size);
    finish(vcpu, instruction, address_size);
    Ok(())
}

/// INS or OUTS on a port: one step. `exchange` gets what OUTS sends and returns what INS receives.
pub fn port_string(
    vcpu: &mut impl VcpuState,
    memory: &(impl GuestMemory + ?Sized),
    access: &PortAccess,
    exchange: impl FnOnce(u64) -> u64,
) -> Result<(), Refused> {
    let bytes = instruction::fetch(vcpu, memory)?;
    let instruction = instruction::decode(vcpu, &bytes).ok_or(Exception::InvalidOpcode)?;
    let address_size = address_size(&instruction)?;
    if access.is_rep && vcpu.gpr_sized(Gpr::Rcx, address_size) == 0 {
        vcpu.set_rip(instruction.next_ip());
        return Ok(());
    }
    let (segment, pointer, purpose) = if access.is_in {
        (Register::ES, Gpr::Rdi, Purpose::Write)
    } else {
        (instruction.memory_segment(), Gpr::Rsi, Purpose::Read)
    };
    let address = linear(vcpu, segment, pointer, address_size);
    let gpa = contiguous(vcpu, memory, address, access.size, purpose, instruction.code())?;
    let mut data = [0; 8];
    if access.is_in {
        let received = exchange(0) & access.size.mask();
        // A device register as target would be a second device: no guest does that; the value is dropped.
        let _ = memory.write(gpa, &received.to_le_bytes()[..access.size.bytes()]);
    } else {
        data = if memory.read(gpa, &mut data[..access.size.bytes()]).is_ok() { data } else { [0xff; 8] };
        exchange(u64::from_le_bytes(data) & access.size.mask());
    }
    advance(vcpu, pointer, access.size, address_size);
    finish(vcpu, &instruction, address_size);
    Ok(())
}

fn finish(vcpu: &mut impl VcpuState, instruction: &Instruction, address_size: AccessSize) {
    let is_repeated = instruction.has_rep_prefix() || instruction.has_repne_prefix();
    if !is_repeated || !count_down(vcpu, address_size) {
        vcpu.set_rip(instruction.next_ip());
    }
}

fn advance(vcpu: &mut impl VcpuState, pointer: Gpr, size: AccessSize, address_size: AccessSize) {
    let step = size.bytes() as u64;
    let now = vcpu.gpr_sized(pointer, address_size);
    let next = if vcpu.rflags().contains(Rflags::DIRECTION) { now.wrapping_sub(step) } else { now.wrapping_add(step) };
    register::write_sized(vcpu, pointer, address_size, next);
}

fn linear(vcpu: &impl VcpuState, segment: Register, pointer: Gpr, address_size: AccessSize) -> u64 {
    let offset = vcpu.gpr_sized(pointer, address_size);
    let is_64_bit = instruction::bitness(vcpu) == 64;
    let (name, has_base) = match segment {
        Register::FS => (SegmentName::Fs, true),
        Register::GS => (SegmentName::Gs, true),
        Register::CS => (SegmentName::Cs, !is_64_bit),
        Register::SS => (SegmentName::Ss, !is_64_bit),
        Register::ES => (SegmentName::Es, !is_64_bit),
        _ => (SegmentName::Ds, !is_64_bit),
    };
    let base = if has_base { vcpu.segment(name).base } else { 0 };
    let address = base.wrapping_add(offset);
    if is_64_bit { address } else { address & 0xffff_ffff }
}

/// Translates an operand that lies on one page; one that does not is refused.
fn contiguous(
    vcpu: &impl VcpuState,
    memory: &(impl GuestMemory + ?Sized),
    address: u64,
    size: AccessSize,
    purpose: Purpose,
    code: Code,
) -> Result<Gpa, Refused> {
    if address % PAGE + size.bytes() as u64 > PAGE {
        return Err(Refused::Unsupported(code));
    }
    Ok(translate(vcpu, memory, address, purpose)?)
}

/// The width of the pointers and the count.
fn address_size(instruction: &Instruction) -> Result<AccessSize, Refused> {
    let kinds = [instruction.op0_kind(), instruction.op1_kind()];
    let has = |wanted: [OpKind; 3]| kinds.iter().any(|kind| wanted.contains(kind));
    if has([OpKind::MemoryESRDI, OpKind::MemorySegRSI, OpKind::MemorySegRDI]) {
        Ok(AccessSize::Qword)
    } else if has([OpKind::MemoryESEDI, OpKind::MemorySegESI, OpKind::MemorySegEDI]) {
        Ok(AccessSize::Dword)
    } else if has([OpKind::MemoryESDI, OpKind::MemorySegSI, OpKind::MemorySegDI]) {
        Ok(AccessSize::Word)
    } else {
        Err(Refused::Unsupported(instruction.code()))
    }
}
