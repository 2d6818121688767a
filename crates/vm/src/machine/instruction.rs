// SPDX-License-Identifier: MIT OR Apache-2.0
//! The instruction a guest left at: its bytes, its length, its decoding.
//!
//! CPUs with next-RIP save and decode assists state both; the others (and emulators) make the hypervisor read the
//! guest's memory, as here. The guest may change the bytes meanwhile: whatever is read is treated as the instruction,
//! and harms no one but the guest.

use iced_x86::{Decoder, DecoderOptions, Instruction, Register};

use crate::machine::walk::{Purpose, inspect, translate};
use crate::memory::GuestMemory;
use crate::vcpu::{AccessRights, Exception, SegmentName, VcpuState, efer};

/// No instruction is longer (AMD APM vol. 3, section 1.1).
pub const MAX_BYTES: usize = 15;

const PAGE: u64 = 4096;
/// Bytes that are read at once.
const WORD: u64 = 8;

/// Instruction bytes at RIP, as many as could be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes {
    bytes: [u8; MAX_BYTES],
    count: usize,
}

impl Bytes {
    /// The same without the bytes behind the first instruction in them.
    pub fn of_instruction(mut self, instruction: &Instruction) -> Self {
        self.count = self.count.min(instruction.len());
        self
    }

    /// Returns the bytes that could be read.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.count]
    }
}

/// Has the decoder make its tables, 100 KB on the heap, once for all guests. It would do so when it is first used,
/// which is on the path of an exit.
pub(crate) fn prepare() {
    let _ = Decoder::new(64, &[], DecoderOptions::NONE);
}

/// The mode instructions are decoded in: 16, 32 or 64.
pub fn bitness(vcpu: &(impl VcpuState + ?Sized)) -> u32 {
    let rights = vcpu.segment(SegmentName::Cs).rights;
    if vcpu.efer() & efer::LMA != 0 && rights.contains(AccessRights::LONG) {
        64
    } else if rights.contains(AccessRights::DEFAULT_32) {
        32
    } else {
        16
    }
}

/// RIP as a linear address.
#[inline(always)]
fn linear_rip(vcpu: &(impl VcpuState + ?Sized)) -> u64 {
    let code = vcpu.segment(SegmentName::Cs);
    if vcpu.efer() & efer::LMA != 0 && code.rights.contains(AccessRights::LONG) {
        vcpu.rip()
    } else {
        code.base.wrapping_add(vcpu.rip()) & 0xffff_ffff
    }
}

/// Reads the instruction at RIP. The error is a page fault for the guest.
pub fn fetch(vcpu: &(impl VcpuState + ?Sized), memory: &(impl GuestMemory + ?Sized)) -> Result<Bytes, Exception> {
    let mut fetched = Bytes { bytes: [0; MAX_BYTES], count: 0 };
    let supplied = vcpu.instruction_bytes();
    if !supplied.is_empty() {
        fetched.count = supplied.len().min(MAX_BYTES);
        fetched.bytes[..fetched.count].copy_from_slice(&supplied[..fetched.count]);
        return Ok(fetched);
    }
    let linear = linear_rip(vcpu);
    let gpa = translate(vcpu, memory, linear, Purpose::Inspect)?;
    let first = ((PAGE - linear % PAGE) as usize).min(MAX_BYTES);
    if memory.read(gpa, &mut fetched.bytes[..first]).is_ok() {
        fetched.count = first;
    }
    if fetched.count == first && first < MAX_BYTES {
        // The rest may lie on the next page; if that is not there, the instruction may still be complete.
        let next = translate(vcpu, memory, linear.wrapping_add(first as u64), Purpose::Inspect);
        if next.is_ok_and(|gpa| memory.read(gpa, &mut fetched.bytes[first..]).is_ok()) {
            fetched.count = MAX_BYTES;
        }
    }
    Ok(fetched)
}

/// Decodes the instruction at RIP; `None` if it is not a whole valid instruction.
pub fn decode(vcpu: &(impl VcpuState + ?Sized), bytes: &Bytes) -> Option<Instruction> {
    decode_with(vcpu, bytes, DecoderOptions::NONE)
}

fn decode_with(vcpu: &(impl VcpuState + ?Sized), bytes: &Bytes, options: u32) -> Option<Instruction> {
    let mut decoder = Decoder::with_ip(bitness(vcpu), bytes.as_slice(), vcpu.rip(), options);
    let instruction = decoder.decode();
    (!instruction.is_invalid()).then_some(instruction)
}

/// The MOV to CR8 at RIP, in AMD's other encoding (LOCK MOV to CR0, for modes without REX) too; `None` if it is none.
pub fn decode_task_priority_write(vcpu: &(impl VcpuState + ?Sized), bytes: &Bytes) -> Option<Instruction> {
    decode_with(vcpu, bytes, DecoderOptions::AMD).filter(|instruction| instruction.op0_register() == Register::CR8)
}

/// An instruction's usual encoding, without prefixes.
#[derive(Clone, Copy, Debug)]
pub struct Usual {
    /// Its bytes, the first one lowest.
    word: u64,
    mask: u64,
    bytes: u64,
}

impl Usual {
    /// The encoding made of at most seven bytes.
    pub const fn new(bytes: &[u8]) -> Self {
        let mut word = 0;
        let mut index = 0;
        while index < bytes.len() {
            word |= (bytes[index] as u64) << (8 * index);
            index += 1;
        }
        Self { word, mask: (1 << (8 * bytes.len())) - 1, bytes: bytes.len() as u64 }
    }
}

/// Moves RIP past the instruction the guest left at. If the bytes at RIP are just its `usual` encoding, nothing needs
/// to be decoded.
///
/// The error is the exception that the guest gets instead: a page fault if its instruction is not there any more, #UD
/// if it is none any more.
#[inline(always)]
pub fn skip(
    vcpu: &mut (impl VcpuState + ?Sized),
    memory: &(impl GuestMemory + ?Sized),
    usual: Usual,
) -> Result<(), Exception> {
    let next = match vcpu.next_rip() {
        Some(next) => next,
        None if is_usual(vcpu, memory, usual) => vcpu.rip().wrapping_add(usual.bytes),
        None => decoded_next_rip(vcpu, memory)?,
    };
    vcpu.set_rip(next);
    Ok(())
}

/// Moves RIP past the instruction there if it is this one, in its usual encoding; returns whether it was.
pub fn skip_if(vcpu: &mut (impl VcpuState + ?Sized), memory: &(impl GuestMemory + ?Sized), usual: Usual) -> bool {
    let is_there = is_usual(vcpu, memory, usual);
    if is_there {
        vcpu.set_rip(vcpu.rip().wrapping_add(usual.bytes));
    }
    is_there
}

#[inline(always)]
fn is_usual(vcpu: &(impl VcpuState + ?Sized), memory: &(impl GuestMemory + ?Sized), usual: Usual) -> bool {
    let linear = linear_rip(vcpu);
    if linear % PAGE > PAGE - WORD {
        return is_usual_at_page_end(vcpu, memory, usual, linear);
    }
    let word = inspect(vcpu, memory, linear).and_then(|gpa| memory.read_u64(gpa).ok());
    word.is_some_and(|word| word & usual.mask == usual.word)
}

/// The page's last word holds it, or it is not searched for.
#[cold]
fn is_usual_at_page_end(
    vcpu: &(impl VcpuState + ?Sized),
    memory: &(impl GuestMemory + ?Sized),
    usual: Usual,
    linear: u64,
) -> bool {
    let before = linear % PAGE - (PAGE - WORD);
    if before + usual.bytes > WORD {
        return false;
    }
    let word = inspect(vcpu, memory, linear - before).and_then(|gpa| memory.read_u64(gpa).ok());
    word.is_some_and(|word| word >> (8 * before) & usual.mask == usual.word)
}

#[cold]
fn decoded_next_rip(vcpu: &(impl VcpuState + ?Sized), memory: &(impl GuestMemory + ?Sized)) -> Result<u64, Exception> {
    let bytes = fetch(vcpu, memory)?;
    let instruction = decode(vcpu, &bytes).ok_or(Exception::InvalidOpcode)?;
    Ok(instruction.next_ip())
}

#[cfg(test)]
#[path = "instruction_tests.rs"]
mod tests;
