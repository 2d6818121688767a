// SPDX-License-Identifier: MIT OR Apache-2.0
//! String instructions: MOVS, STOS, LODS, CMPS and SCAS on device registers, INS and OUTS on ports.
//!
//! A repeated instruction is emulated one step at a time: RIP stays at it until the count is used up, so that
//! interrupts come in between as they would on the CPU.

use iced_x86::{Code, Instruction, OpKind};

use super::alu::{ALL, Operation, ZERO};
use super::operand::{Span, locate};
use super::{MemoryBus, Refused, Step, VectorFile, address, next_rip, register};
use crate::addr::AccessSize;
use crate::exit::PortAccess;
use crate::machine::instruction;
use crate::machine::walk::Purpose;
use crate::memory::GuestMemory;
use crate::vcpu::{Exception, Gpr, Rflags, VcpuState};

/// A string instruction, by the manual's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum StringKind {
    Movs,
    Stos,
    Lods,
    Cmps,
    Scas,
}

impl StringKind {
    /// The kind of a code.
    pub fn of(code: Code) -> Option<Self> {
        Some(match code {
            Code::Movsb_m8_m8 | Code::Movsw_m16_m16 | Code::Movsd_m32_m32 | Code::Movsq_m64_m64 => Self::Movs,
            Code::Stosb_m8_AL | Code::Stosw_m16_AX | Code::Stosd_m32_EAX | Code::Stosq_m64_RAX => Self::Stos,
            Code::Lodsb_AL_m8 | Code::Lodsw_AX_m16 | Code::Lodsd_EAX_m32 | Code::Lodsq_RAX_m64 => Self::Lods,
            Code::Cmpsb_m8_m8 | Code::Cmpsw_m16_m16 | Code::Cmpsd_m32_m32 | Code::Cmpsq_m64_m64 => Self::Cmps,
            Code::Scasb_AL_m8 | Code::Scasw_AX_m16 | Code::Scasd_EAX_m32 | Code::Scasq_RAX_m64 => Self::Scas,
            _ => return None,
        })
    }

    /// Returns which operand rSI points to.
    fn source(self) -> Option<u32> {
        match self {
            Self::Movs | Self::Lods => Some(1),
            Self::Cmps => Some(0),
            Self::Stos | Self::Scas => None,
        }
    }

    /// Returns the operand that rDI points to, and its purpose.
    fn target(self) -> Option<(u32, Purpose)> {
        match self {
            Self::Movs | Self::Stos => Some((0, Purpose::Write)),
            Self::Cmps | Self::Scas => Some((1, Purpose::Read)),
            Self::Lods => None,
        }
    }
}

impl<V: VcpuState + ?Sized, M: GuestMemory + ?Sized, B: MemoryBus + VectorFile> Step<'_, V, M, B> {
    /// One step of a string instruction.
    pub(super) fn string(&mut self, kind: StringKind) -> Result<(), Refused> {
        let address_size = address_size(self.instruction)?;
        if is_repeated(self.instruction) && self.vcpu.gpr_sized(Gpr::Rcx, address_size) == 0 {
            self.finish();
            return Ok(());
        }
        let source = kind.source().map(|index| self.string_operand(index, Purpose::Read)).transpose()?;
        let target = kind.target().map(|(index, purpose)| self.string_operand(index, purpose)).transpose()?;
        let spans = [source, target];
        if !spans.iter().flatten().any(|span| span.touches(self.fault)) {
            return Err(Refused::Changed);
        }
        self.transfer(kind, source, target);
        if source.is_some() {
            advance(self.vcpu, Gpr::Rsi, self.size, address_size);
        }
        if target.is_some() {
            advance(self.vcpu, Gpr::Rdi, self.size, address_size);
        }
        let goes_on = self.goes_on(kind);
        end_step(self.vcpu, self.instruction, address_size, goes_on);
        Ok(())
    }

    fn string_operand(&self, index: u32, purpose: Purpose) -> Result<Span, Refused> {
        let at = address::of(self.vcpu, self.instruction, index, 0)?;
        locate(self.vcpu, self.memory, at, self.size.bytes(), purpose)
    }

    fn transfer(&mut self, kind: StringKind, source: Option<Span>, target: Option<Span>) {
        let accumulator = self.vcpu.gpr_sized(Gpr::Rax, self.size);
        let left = source.map_or(accumulator, |span| self.load(span));
        match (kind, target) {
            (StringKind::Movs | StringKind::Stos, Some(target)) => self.store(target, left),
            (StringKind::Cmps | StringKind::Scas, Some(target)) => {
                let right = self.load(target);
                let (_, flags) = Operation::Cmp.compute(left, right, false, self.size);
                self.set_flags(ALL, flags);
            }
            _ => register::write_sized(self.vcpu, Gpr::Rax, self.size, left),
        }
    }

    /// Returns whether a repeated instruction goes on if its count permits: a comparison ends it.
    fn goes_on(&self, kind: StringKind) -> bool {
        let is_comparison = matches!(kind, StringKind::Cmps | StringKind::Scas);
        !is_comparison || self.has_flag(ZERO) != self.instruction.has_repne_prefix()
    }
}

/// One step of INS or OUTS whose operand in memory has been translated.
#[derive(Clone, Copy, Debug)]
pub struct PortString {
    instruction: Instruction,
    span: Span,
    address_size: AccessSize,
    size: AccessSize,
    pointer: Gpr,
}

/// Decodes the INS or OUTS at RIP and translates its operand. `None`: its count is zero, and it is done with.
///
/// # Errors
/// It cannot be read, is no such instruction any more, or its operand cannot be accessed.
pub fn port_string(
    vcpu: &mut (impl VcpuState + ?Sized),
    memory: &(impl GuestMemory + ?Sized),
    access: &PortAccess,
) -> Result<Option<PortString>, Refused> {
    let bytes = instruction::fetch(vcpu, memory)?;
    let instruction = instruction::decode(vcpu, &bytes).ok_or(Exception::InvalidOpcode)?;
    let address_size = address_size(&instruction)?;
    if access.is_rep && vcpu.gpr_sized(Gpr::Rcx, address_size) == 0 {
        let next = next_rip(&instruction);
        vcpu.set_rip(next);
        return Ok(None);
    }
    let (index, pointer, purpose) =
        if access.is_in { (0, Gpr::Rdi, Purpose::Write) } else { (1, Gpr::Rsi, Purpose::Read) };
    let at = address::of(vcpu, &instruction, index, 0)?;
    let span = locate(vcpu, memory, at, access.size.bytes(), purpose)?;
    Ok(Some(PortString { instruction, span, address_size, size: access.size, pointer }))
}

impl PortString {
    /// Loads the data that OUTS sends.
    pub fn load(&self, memory: &(impl GuestMemory + ?Sized), bus: &mut impl MemoryBus) -> u64 {
        self.span.load(memory, bus, self.size)
    }

    /// Stores the data that INS has received.
    pub fn store(&self, memory: &(impl GuestMemory + ?Sized), bus: &mut impl MemoryBus, value: u64) {
        self.span.store(memory, bus, (self.size, value));
    }

    /// Moves the pointer, and RIP if this was the last step.
    pub fn finish(&self, vcpu: &mut (impl VcpuState + ?Sized)) {
        advance(vcpu, self.pointer, self.size, self.address_size);
        end_step(vcpu, &self.instruction, self.address_size, true);
    }
}

fn is_repeated(instruction: &Instruction) -> bool {
    instruction.has_rep_prefix() || instruction.has_repne_prefix()
}

/// Counts a step; moves RIP on if it was the last.
fn end_step(vcpu: &mut (impl VcpuState + ?Sized), instruction: &Instruction, address_size: AccessSize, goes_on: bool) {
    let is_last = !is_repeated(instruction) || !count_down(vcpu, address_size) || !goes_on;
    // An interrupt shadow ends with the first step.
    let next = if is_last { next_rip(instruction) } else { vcpu.rip() };
    vcpu.set_rip(next);
}

fn advance(vcpu: &mut (impl VcpuState + ?Sized), pointer: Gpr, size: AccessSize, address_size: AccessSize) {
    let step = size.bytes() as u64;
    let now = vcpu.gpr_sized(pointer, address_size);
    let next = if vcpu.rflags().contains(Rflags::DIRECTION) { now.wrapping_sub(step) } else { now.wrapping_add(step) };
    register::write_sized(vcpu, pointer, address_size, next);
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

/// Decrements RCX (in the instruction's address width); returns whether a repeated instruction continues.
fn count_down(vcpu: &mut (impl VcpuState + ?Sized), address_size: AccessSize) -> bool {
    let left = vcpu.gpr_sized(Gpr::Rcx, address_size).wrapping_sub(1) & address_size.mask();
    register::write_sized(vcpu, Gpr::Rcx, address_size, left);
    left != 0
}
