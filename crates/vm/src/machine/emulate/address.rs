// SPDX-License-Identifier: MIT OR Apache-2.0
//! Linear addresses of operands, and the checks of segments that precede paging (AMD APM vol. 2, sections 1.3.1 and 4.7
//! to 4.12).

use iced_x86::{Instruction, OpKind, Register};

use super::Refused;
use super::register::gpr;
use crate::addr::AccessSize;
use crate::machine::instruction;
use crate::machine::walk::Purpose;
use crate::vcpu::{AccessRights, Exception, Gpr, Rflags, SegmentName, VcpuState, cr0, cr4};

/// An operand's address before segmentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Logical {
    pub segment: SegmentName,
    pub offset: u64,
}

/// The address of operand `index`. `stack_step` is what the instruction has added to RSP by then: POP uses RSP as it
/// leaves it.
pub fn of(
    vcpu: &(impl VcpuState + ?Sized),
    instruction: &Instruction,
    index: u32,
    stack_step: u64,
) -> Result<Logical, Refused> {
    let is_es = matches!(instruction.op_kind(index), OpKind::MemoryESDI | OpKind::MemoryESEDI | OpKind::MemoryESRDI);
    let segment = if is_es { Register::ES } else { instruction.memory_segment() };
    let value = |register: Register, _, _| {
        let Some(gpr) = gpr(register) else { return Some(0) };
        Some(vcpu.gpr(gpr).wrapping_add(if gpr == Gpr::Rsp { stack_step } else { 0 }))
    };
    let offset = instruction.virtual_address(index, 0, value).ok_or(Refused::Unsupported(instruction.code()))?;
    Ok(Logical { segment: name(segment), offset })
}

/// The width of addresses of the operand in memory.
pub fn width(instruction: &Instruction) -> AccessSize {
    let registers = [instruction.memory_base(), instruction.memory_index()];
    let bytes = registers.iter().find(|register| **register != Register::None).map(|register| register.size());
    AccessSize::from_bytes(bytes.unwrap_or(instruction.memory_displ_size() as usize)).unwrap_or(AccessSize::Qword)
}

/// The linear address of `bytes` bytes, if segmentation permits the access: otherwise #SS for the stack segment, #GP
/// for others.
pub fn checked(
    vcpu: &(impl VcpuState + ?Sized),
    at: Logical,
    bytes: usize,
    purpose: Purpose,
) -> Result<u64, Exception> {
    let is_64_bit = instruction::bitness(vcpu) == 64;
    let base = match at.segment {
        SegmentName::Fs | SegmentName::Gs => vcpu.segment(at.segment).base,
        _ if is_64_bit => 0,
        other => vcpu.segment(other).base,
    };
    let linear = base.wrapping_add(at.offset);
    let last = linear.wrapping_add(bytes as u64 - 1);
    let is_permitted = if is_64_bit {
        is_canonical(vcpu, linear) && is_canonical(vcpu, last)
    } else {
        is_within(vcpu, at, bytes as u64, purpose)
    };
    match (is_permitted, at.segment) {
        (true, _) => Ok(if is_64_bit { linear } else { linear & 0xffff_ffff }),
        (false, SegmentName::Ss) => Err(Exception::StackFault(0)),
        (false, _) => Err(Exception::GeneralProtection(0)),
    }
}

/// The linear address `bytes` further on.
pub fn further(vcpu: &(impl VcpuState + ?Sized), linear: u64, bytes: u64) -> u64 {
    let further = linear.wrapping_add(bytes);
    if instruction::bitness(vcpu) == 64 { further } else { further & 0xffff_ffff }
}

fn is_canonical(vcpu: &(impl VcpuState + ?Sized), linear: u64) -> bool {
    let unused = if vcpu.cr4() & cr4::LA57 != 0 { 64 - 57 } else { 64 - 48 };
    ((linear << unused) as i64 >> unused) as u64 == linear
}

/// Returns whether a segment outside 64-bit mode contains the bytes and permits the access.
fn is_within(vcpu: &(impl VcpuState + ?Sized), at: Logical, bytes: u64, purpose: Purpose) -> bool {
    let segment = vcpu.segment(at.segment);
    let has = |right| segment.rights.contains(right);
    let is_protected = vcpu.cr0() & cr0::PE != 0 && !vcpu.rflags().contains(Rflags::VIRTUAL_8086);
    let is_permitted = match purpose {
        Purpose::Write => !has(AccessRights::CODE) && has(AccessRights::READABLE_OR_WRITABLE),
        Purpose::Read | Purpose::Inspect => !has(AccessRights::CODE) || has(AccessRights::READABLE_OR_WRITABLE),
    };
    if is_protected && !(has(AccessRights::PRESENT) && is_permitted) {
        return false;
    }
    let last = at.offset + bytes - 1;
    if has(AccessRights::CODE) || !has(AccessRights::CONFORMING_OR_GROWS_DOWN) {
        return last <= segment.limit.into();
    }
    let top = if has(AccessRights::DEFAULT_32) { 0xffff_ffff } else { 0xffff };
    at.offset > segment.limit.into() && last <= top
}

fn name(segment: Register) -> SegmentName {
    match segment {
        Register::ES => SegmentName::Es,
        Register::CS => SegmentName::Cs,
        Register::SS => SegmentName::Ss,
        Register::FS => SegmentName::Fs,
        Register::GS => SegmentName::Gs,
        _ => SegmentName::Ds,
    }
}

#[cfg(test)]
#[path = "address_tests.rs"]
mod tests;
