// SPDX-License-Identifier: MIT OR Apache-2.0
//! Operands in memory: on one page or on two, each of them memory or device registers.

use iced_x86::{Instruction, OpKind};

use super::{MemoryBus, Refused, Step, address};
use crate::addr::{AccessSize, Gpa};
use crate::machine::walk::Purpose;
use crate::machine::walk::path::path;
use crate::memory::GuestMemory;
use crate::vcpu::VcpuState;

pub(super) const PAGE: u64 = 4096;
/// The most translations of an operand while the guest's other vCPUs change entries that lead to it.
const MOST_WALKS: usize = 8;

/// Place of an operand in guest-physical memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// On one page, where the CPU found no memory.
    Device(Gpa),
    /// On one page or two, each of them memory or device registers.
    Pages(Pages),
}

/// The translated place of an operand. The guest may have mapped two neighbouring pages anywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pages {
    first: Gpa,
    /// Bytes from there to the end of the page.
    first_bytes: usize,
    /// Address of the other bytes.
    second: Gpa,
}

/// Returns the place of the operand in memory among the operands: the first or the second in every instruction without
/// a VEX prefix. The decoder's table of how many operands an instruction has would be 5 KB of the image.
#[inline]
pub(super) fn memory_index(instruction: &Instruction) -> Option<u32> {
    (0..2).find(|operand| instruction.op_kind(*operand) == OpKind::Memory)
}

impl Span {
    /// Returns whether the operand has a part on the page of `gpa`.
    pub fn touches(&self, gpa: Gpa) -> bool {
        match self {
            Self::Device(at) => is_same_page(*at, gpa),
            Self::Pages(pages) => is_same_page(pages.first, gpa) || is_same_page(pages.second, gpa),
        }
    }

    /// The part that begins `bytes` bytes further on.
    pub fn behind(&self, bytes: usize) -> Self {
        match self {
            Self::Device(gpa) => Self::Device(Gpa(gpa.0 + bytes as u64)),
            Self::Pages(Pages { first, first_bytes, second }) if bytes < *first_bytes => Self::Pages(Pages {
                first: Gpa(first.0 + bytes as u64),
                first_bytes: first_bytes - bytes,
                second: *second,
            }),
            Self::Pages(Pages { first_bytes, second, .. }) => {
                let first = Gpa(second.0 + (bytes - first_bytes) as u64);
                Self::Pages(Pages { first, first_bytes: PAGE as usize, second: first })
            }
        }
    }

    /// Loads a value.
    #[inline]
    pub fn load(&self, memory: &(impl GuestMemory + ?Sized), bus: &mut impl MemoryBus, size: AccessSize) -> u64 {
        match self {
            Self::Device(gpa) => bus.load(*gpa, size) & size.mask(),
            Self::Pages(pages) => pages.load(memory, bus, size.bytes()),
        }
    }

    /// Stores a value.
    #[inline]
    pub fn store(
        &self,
        memory: &(impl GuestMemory + ?Sized),
        bus: &mut impl MemoryBus,
        (size, value): (AccessSize, u64),
    ) {
        match self {
            Self::Device(gpa) => bus.store(*gpa, size, value & size.mask()),
            Self::Pages(pages) => pages.store(memory, bus, size.bytes(), value),
        }
    }
}

impl Pages {
    #[cold]
    fn load(&self, memory: &(impl GuestMemory + ?Sized), bus: &mut impl MemoryBus, bytes: usize) -> u64 {
        if self.first_bytes >= bytes {
            return load_part(memory, bus, self.first, bytes);
        }
        let low = load_part(memory, bus, self.first, self.first_bytes);
        low | load_part(memory, bus, self.second, bytes - self.first_bytes) << (8 * self.first_bytes)
    }

    #[cold]
    fn store(&self, memory: &(impl GuestMemory + ?Sized), bus: &mut impl MemoryBus, bytes: usize, value: u64) {
        if self.first_bytes >= bytes {
            return store_part(memory, bus, self.first, (bytes, value));
        }
        store_part(memory, bus, self.first, (self.first_bytes, value));
        store_part(memory, bus, self.second, (bytes - self.first_bytes, value >> (8 * self.first_bytes)));
    }
}

/// Translates an operand, each of its pages by itself, and sets accessed and dirty bits in the guest's page tables, as
/// the CPU does before it accesses memory. Nothing else is stored. Operands that are written are located last, so that
/// what an instruction that faults leaves behind are accessed bits.
///
/// # Errors
/// The exception that the guest gets, or [`Refused::Changed`]: whenever the tables were read, the guest changed them.
pub fn locate(
    vcpu: &(impl VcpuState + ?Sized),
    memory: &(impl GuestMemory + ?Sized),
    at: address::Logical,
    bytes: usize,
    purpose: Purpose,
) -> Result<Span, Refused> {
    let linear = address::checked(vcpu, at, bytes, purpose)?;
    let first_bytes = (PAGE - linear % PAGE) as usize;
    for _ in 0..MOST_WALKS {
        let first = path(vcpu, memory, linear, purpose)?;
        let second = if first_bytes < bytes {
            path(vcpu, memory, address::further(vcpu, linear, first_bytes as u64), purpose)?
        } else {
            first
        };
        // Both are checked before either is marked. Entries of both are marked by the first: the next walk finds them
        // so.
        if first.mark(memory, purpose) && (first_bytes >= bytes || second.mark(memory, purpose)) {
            return Ok(Span::Pages(Pages { first: first.gpa, first_bytes, second: second.gpa }));
        }
    }
    Err(Refused::Changed)
}

impl<V: VcpuState + ?Sized, M: GuestMemory + ?Sized, B: MemoryBus> Step<'_, V, M, B> {
    /// The instruction's one operand in memory.
    #[inline]
    pub(super) fn operand(&self, purpose: Purpose) -> Result<Span, Refused> {
        self.operand_of(self.size.bytes(), 0, purpose)
    }

    /// The operand of `bytes` bytes that lies `displacement` behind the address that the instruction names. Far from
    /// the ends of its page the address that the CPU reported is where it begins, and the CPU has checked it.
    #[inline]
    pub(super) fn operand_of(&self, bytes: usize, displacement: u64, purpose: Purpose) -> Result<Span, Refused> {
        let offset = (self.fault.0 % PAGE) as usize;
        if offset >= bytes && offset + bytes <= PAGE as usize {
            return Ok(Span::Device(self.fault));
        }
        self.operand_at_edge(bytes, displacement, purpose)
    }

    /// The CPU may have reported the first part of an operand that straddles two pages, or the second.
    #[cold]
    fn operand_at_edge(&self, bytes: usize, displacement: u64, purpose: Purpose) -> Result<Span, Refused> {
        let mut at = address::of(self.vcpu, self.instruction, self.memory_index(), 0)?;
        if displacement != 0 {
            at.offset = at.offset.wrapping_add(displacement) & address::width(self.instruction).mask();
        }
        let linear = address::checked(self.vcpu, at, bytes, purpose)?;
        if linear % PAGE + bytes as u64 <= PAGE {
            let is_it = linear % PAGE == self.fault.0 % PAGE;
            return if is_it { Ok(Span::Device(self.fault)) } else { Err(Refused::Changed) };
        }
        let span = locate(self.vcpu, self.memory, at, bytes, purpose)?;
        self.confirm(&[span])?;
        Ok(span)
    }

    /// Checks that one of the operands lies where the CPU found no memory.
    pub(super) fn confirm(&self, spans: &[Span]) -> Result<(), Refused> {
        if spans.iter().any(|span| span.touches(self.fault)) { Ok(()) } else { Err(Refused::Changed) }
    }

    /// The place of the operand in memory among the instruction's operands.
    fn memory_index(&self) -> u32 {
        memory_index(self.instruction).unwrap_or(0)
    }

    /// Loads an operand.
    #[inline]
    pub(super) fn load(&mut self, span: Span) -> u64 {
        span.load(self.memory, self.bus, self.size)
    }

    /// Stores an operand.
    #[inline]
    pub(super) fn store(&mut self, span: Span, value: u64) {
        span.store(self.memory, self.bus, (self.size, value));
    }
}

fn is_same_page(one: Gpa, other: Gpa) -> bool {
    one.0 / PAGE == other.0 / PAGE
}

fn load_part(memory: &(impl GuestMemory + ?Sized), bus: &mut impl MemoryBus, gpa: Gpa, bytes: usize) -> u64 {
    let mut data = [0; 8];
    if memory.read(gpa, &mut data[..bytes]).is_ok() {
        return u64::from_le_bytes(data);
    }
    match AccessSize::from_bytes(bytes) {
        Some(size) => bus.load(gpa, size) & size.mask(),
        None => pieces(gpa, bytes)
            .fold(0, |value, (at, size)| value | (bus.load(at, size) & size.mask()) << (8 * (at.0 - gpa.0))),
    }
}

fn store_part(memory: &(impl GuestMemory + ?Sized), bus: &mut impl MemoryBus, gpa: Gpa, (bytes, value): (usize, u64)) {
    if memory.write(gpa, &value.to_le_bytes()[..bytes]).is_ok() {
        return;
    }
    match AccessSize::from_bytes(bytes) {
        Some(size) => bus.store(gpa, size, value & size.mask()),
        None => {
            pieces(gpa, bytes).for_each(|(at, size)| bus.store(at, size, value >> (8 * (at.0 - gpa.0)) & size.mask()))
        }
    }
}

/// Aligned accesses that together make up a number of bytes that no access has.
fn pieces(gpa: Gpa, bytes: usize) -> impl Iterator<Item = (Gpa, AccessSize)> {
    let mut done = 0;
    core::iter::from_fn(move || {
        let at = Gpa(gpa.0.wrapping_add(done as u64));
        let fits = |size: &AccessSize| done + size.bytes() <= bytes && at.0.is_multiple_of(size.bytes() as u64);
        let size = [AccessSize::Dword, AccessSize::Word, AccessSize::Byte].into_iter().find(fits)?;
        done += size.bytes();
        Some((at, size))
    })
}
