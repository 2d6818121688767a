// SPDX-License-Identifier: MIT OR Apache-2.0
//! Moves between memory and vector registers, which compilers emit to copy structures: SSE's, and AVX's of 128 and 256
//! bits.
//!
//! The decoder is built without VEX (its tables are four times as large). Of the instructions with such a prefix only
//! moves are emulated, and these have an SSE form with the same operands. So the prefix is replaced by that form's, and
//! the result decoded.

use iced_x86::{Code, Decoder, DecoderOptions, Instruction, OpKind, Register};

use super::kind::{self, Kind};
use super::operand::PAGE;
use super::vector_file::{VectorFile, VectorWrite};
use super::vector_move::{Part, VectorMove};
use super::{Access, MemoryBus, Refused, Step, address};
use crate::machine::instruction::{Bytes, MAX_BYTES};
use crate::machine::walk::Purpose;
use crate::memory::GuestMemory;
use crate::vcpu::{Exception, VcpuState};

impl<V: VcpuState + ?Sized, M: GuestMemory + ?Sized, B: MemoryBus + VectorFile> Step<'_, V, M, B> {
    /// A move of a vector register, in accesses of at most 64 bits.
    pub(super) fn vector(&mut self, VectorMove { part, write }: VectorMove) -> Result<(), Refused> {
        let is_load = self.instruction.op0_kind() == OpKind::Register;
        let register = xmm(self.instruction, u32::from(!is_load))?;
        let bytes = VectorMove { part, write }.bytes(self.size);
        if part == (Part::Whole { is_aligned: true }) {
            self.check_alignment(bytes as u64, is_load)?;
        }
        let span = self.operand_of(bytes, 0, if is_load { Purpose::Read } else { Purpose::Write })?;
        let mut value = self.bus.vector(register);
        let words = bytes.div_ceil(8);
        let place = usize::from(part == Part::HighHalf);
        if !is_load {
            value[place..place + words].iter().enumerate().for_each(|(index, word)| {
                self.store(span.behind(8 * index), *word);
            });
            return Ok(());
        }
        if part == Part::Low {
            value[1] = 0;
        }
        for (index, word) in value[place..place + words].iter_mut().enumerate() {
            *word = self.load(span.behind(8 * index));
        }
        self.bus.set_vector(register, value, write);
        Ok(())
    }

    fn check_alignment(&self, bytes: u64, is_load: bool) -> Result<(), Refused> {
        if self.fault.0.is_multiple_of(bytes) && !self.fault.0.is_multiple_of(PAGE) {
            return Ok(());
        }
        let at = address::of(self.vcpu, self.instruction, u32::from(is_load), 0)?;
        let linear = address::checked(self.vcpu, at, bytes as usize, Purpose::Inspect)?;
        if linear.is_multiple_of(bytes) { Ok(()) } else { Err(Exception::GeneralProtection(0).into()) }
    }
}

fn xmm(instruction: &Instruction, operand: u32) -> Result<u8, Refused> {
    let register = instruction.op_register(operand);
    let is_xmm = register.is_xmm() && instruction.op_kind(operand) == OpKind::Register;
    if is_xmm {
        Ok((register as u32 - Register::XMM0 as u32) as u8)
    } else {
        Err(Refused::Unsupported(instruction.code()))
    }
}

/// The move with a VEX prefix that the bytes are; `None` if they have none.
///
/// # Errors
/// They have a VEX or EVEX prefix, and are no such move.
pub fn decode(bytes: &Bytes, bitness: u32, rip: u64) -> Result<Option<Access>, Refused> {
    let code = bytes.as_slice();
    let start = code.iter().take_while(|byte| matches!(byte, 0x26 | 0x2e | 0x36 | 0x3e | 0x64 | 0x65 | 0x67)).count();
    let [first, second, ..] = code[start..] else { return Ok(None) };
    // Outside 64-bit mode these are LDS, LES and BOUND if what follows names an operand in memory.
    let is_prefix = matches!(first, 0xc4 | 0xc5 | 0x62) && (bitness == 64 || second >= 0xc0);
    if !is_prefix {
        return Ok(None);
    }
    let unsupported = Refused::Unsupported(Code::INVALID);
    let vex = Vex::of(&code[start..]).ok_or(unsupported)?;
    vex.decode(code, start, bitness, rip).map(Some).ok_or(unsupported)
}

/// A VEX prefix (AMD APM vol. 3, section 1.2.7).
struct Vex {
    bytes: usize,
    /// W, R, X and B as a REX prefix has them.
    rex: u8,
    /// The opcode map: 1 or 2.
    map: u8,
    /// 256 bits.
    is_wide: bool,
    /// The prefix that the SSE form has: none, 66, F3 or F2.
    prefix: Option<u8>,
}

impl Vex {
    fn of(code: &[u8]) -> Option<Self> {
        let (bytes, rxb, map, last) = match *code {
            [0xc5, last, ..] => (2, !last >> 5 & 4, 1, last & 0x7f),
            [0xc4, first, last, ..] => (3, !first >> 5, first & 0x1f, last),
            _ => return None,
        };
        // A move has no third operand: its field is all ones.
        if last & 0x78 != 0x78 || !(1..=2).contains(&map) {
            return None;
        }
        let prefix = [None, Some(0x66), Some(0xf3), Some(0xf2)][usize::from(last & 3)];
        Some(Self { bytes, rex: (last >> 4 & 8) | rxb, map, is_wide: last & 4 != 0, prefix })
    }

    fn decode(&self, code: &[u8], start: usize, bitness: u32, rip: u64) -> Option<Access> {
        let rex = (bitness == 64 && self.rex != 0).then_some(0x40 | self.rex);
        let escape = [Some(0x0f), (self.map == 2).then_some(0x38)];
        let front = code[..start].iter().copied().chain(self.prefix).chain(rex).chain(escape.into_iter().flatten());
        let rest = &code[start + self.bytes..];
        let mut legacy = [0; MAX_BYTES + 3];
        let front_bytes = legacy.iter_mut().zip(front).map(|(into, byte)| *into = byte).count();
        legacy[front_bytes..].iter_mut().zip(rest).for_each(|(into, byte)| *into = *byte);
        let count = (front_bytes + rest.len()).min(MAX_BYTES);
        // It ends where the original does: addresses relative to RIP are computed from there.
        let grown = (front_bytes - start).wrapping_sub(self.bytes) as u64;
        let mut decoder = Decoder::with_ip(bitness, &legacy[..count], rip.wrapping_sub(grown), DecoderOptions::NONE);
        let mut instruction = decoder.decode();
        let (kind, size) = kind::of(&instruction).ok()?;
        let Kind::Vector(VectorMove { part: part @ (Part::Whole { .. } | Part::Low), .. }) = kind else { return None };
        xmm(&instruction, u32::from(instruction.op0_kind() != OpKind::Register)).ok()?;
        if self.is_wide && part == Part::Low {
            return None;
        }
        instruction.set_len(instruction.len().wrapping_sub(grown as usize));
        let write = if self.is_wide { VectorWrite::Whole } else { VectorWrite::Clear };
        Some(Access { instruction, kind: Kind::Vector(VectorMove { part, write }), size })
    }
}

#[cfg(test)]
#[path = "vector_tests.rs"]
mod tests;
