// SPDX-License-Identifier: MIT OR Apache-2.0
//! The MSI-X capability and its table (PCI Local Bus 3.0, section 6.8.2).

use alloc::vec;
use alloc::vec::Vec;

use handover::Full;
use handover::state::MsixEntry;
use zerocopy::FromBytes as _;

use super::bar::BARS;
use super::message;
use super::registers::Registers;
use crate::addr::AccessSize;
use crate::devices::device::At;
use crate::devices::outputs::Outputs;
use crate::devices::{StateError, piece};

pub(super) const CAPABILITY: u8 = 0x11;
/// Bytes behind the capability's number and link.
pub(super) const BODY_BYTES: usize = 10;
/// The most vectors.
const MOST: u16 = 2048;
const ENABLE: u16 = 1 << 15;
const FUNCTION_MASK: u16 = 1 << 14;
/// Vector control: the vector is masked.
const MASKED: u32 = 1 << 0;
const ENTRY_BYTES: usize = size_of::<MsixEntry>();

/// Place of a function's MSI-X table: in base address registers' ranges, which may hold other registers, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MsixPlace {
    /// The base address register of the table's range.
    pub bar: u8,
    /// The base address register of the pending bits' range.
    pub pending_bar: u8,
    /// Vectors: 1 to 2,048.
    pub vectors: u16,
    /// Offset of the table in bytes; a multiple of eight.
    pub table: u32,
    /// Offset of the pending bits in bytes; a multiple of eight, not inside of the table.
    pub pending: u32,
}

/// A function's MSI-X.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Msix {
    /// Offset of the capability in bytes.
    at: usize,
    place: MsixPlace,
    /// Address and data of each vector, and its control.
    entries: Vec<(u64, u32, u32)>,
    pending: Vec<u64>,
}

impl MsixPlace {
    /// The registers behind the capability's number and link, and the bits of them that a guest can write.
    pub(super) fn body(&self) -> Option<([u8; BODY_BYTES], [u8; BODY_BYTES])> {
        let is_possible = (1..=MOST).contains(&self.vectors)
            && self.bar < BARS as u8
            && self.pending_bar < BARS as u8
            && self.table.is_multiple_of(8)
            && self.pending.is_multiple_of(8);
        let (mut body, mut writable) = ([0; BODY_BYTES], [0; BODY_BYTES]);
        body[..2].copy_from_slice(&self.vectors.wrapping_sub(1).to_le_bytes());
        body[2..6].copy_from_slice(&(self.table | u32::from(self.bar)).to_le_bytes());
        body[6..].copy_from_slice(&(self.pending | u32::from(self.pending_bar)).to_le_bytes());
        writable[..2].copy_from_slice(&(ENABLE | FUNCTION_MASK).to_le_bytes());
        is_possible.then_some((body, writable))
    }
}

impl MsixPlace {
    /// Bytes of the table.
    pub const fn table_bytes(&self) -> u64 {
        self.vectors as u64 * ENTRY_BYTES as u64
    }

    /// Bytes of the pending bits.
    pub const fn pending_bytes(&self) -> u64 {
        self.vectors.div_ceil(64) as u64 * 8
    }
}

impl Msix {
    /// MSI-X with its capability at `at`, every vector masked.
    pub(super) fn new(at: usize, place: MsixPlace) -> Self {
        let vectors = usize::from(place.vectors);
        Self { at, place, entries: vec![(0, 0, MASKED); vectors], pending: vec![0; vectors.div_ceil(64)] }
    }

    pub(super) fn reset(&mut self) {
        self.entries.fill((0, 0, MASKED));
        self.pending.fill(0);
    }

    pub(super) fn is_enabled(&self, registers: &Registers) -> bool {
        self.control(registers) & ENABLE != 0
    }

    pub(super) fn is_unmasked(&self, vector: u16) -> bool {
        self.entries.get(usize::from(vector)).is_some_and(|(.., control)| control & MASKED == 0)
    }

    /// The vector with the entry that is accessed.
    pub(super) fn vector_at(&self, at: At) -> Option<u16> {
        let (is_table, offset) = self.find(at)?;
        is_table.then_some((offset / ENTRY_BYTES) as u16)
    }

    /// Interrupts with a vector; one that the function does not have is ignored.
    pub(super) fn raise(&mut self, vector: u16, registers: &Registers, outputs: &mut Outputs) {
        if vector < self.place.vectors {
            self.pending[usize::from(vector) / 64] |= 1 << (vector % 64);
            self.send_pending(registers, outputs);
        }
    }

    /// Sends pending messages that may be sent.
    pub(super) fn send_pending(&mut self, registers: &Registers, outputs: &mut Outputs) {
        if self.control(registers) & (ENABLE | FUNCTION_MASK) != ENABLE {
            return;
        }
        for (word, entries) in self.pending.iter_mut().zip(self.entries.chunks(64)) {
            let mut left = *word;
            while left != 0 {
                let bit = left.trailing_zeros();
                left &= left - 1;
                let Some(&(address, data, control)) = entries.get(bit as usize) else { continue };
                let is_sent = || message::decode(address, data).is_none_or(|message| outputs.send(message));
                if control & MASKED == 0 && { is_sent }() {
                    *word &= !(1 << bit);
                }
            }
        }
    }

    /// Reads table or pending bits; `None` if the access is to neither. Only aligned accesses of four or eight bytes
    /// are defined.
    pub(super) fn read(&self, at: At) -> Option<u64> {
        let (is_table, offset) = self.find(at)?;
        let dword = |offset: usize| {
            let value = if is_table { self.entry_dword(offset) } else { self.pending_dword(offset) };
            u64::from(value.unwrap_or(u32::MAX))
        };
        Some(match at.size {
            _ if !is_defined(at) => at.size.mask(),
            AccessSize::Qword => dword(offset) | dword(offset + 4) << 32,
            _ => dword(offset),
        })
    }

    /// Writes the table; false if the access is neither to it nor to the pending bits, which cannot be written.
    pub(super) fn write(&mut self, at: At, value: u64, registers: &Registers, outputs: &mut Outputs) -> bool {
        let Some((is_table, offset)) = self.find(at) else { return false };
        if is_table && is_defined(at) {
            self.set_entry_dword(offset, value as u32);
            if at.size == AccessSize::Qword {
                self.set_entry_dword(offset + 4, (value >> 32) as u32);
            }
            self.send_pending(registers, outputs);
        }
        true
    }

    /// Writes the table and the pending bits; returns their bytes.
    pub(super) fn save(&self, into: &mut [u8]) -> Result<usize, Full> {
        let mut used = 0;
        for &(address, data, control) in &self.entries {
            let entry = MsixEntry { address: address.into(), data: data.into(), control: control.into() };
            used += piece::save(&entry, into.get_mut(used..).ok_or(Full)?)?;
        }
        for word in &self.pending {
            used += piece::save(&word.to_le_bytes(), into.get_mut(used..).ok_or(Full)?)?;
        }
        Ok(used)
    }

    /// Bytes that [`save`](Self::save) writes.
    pub(super) fn saved_bytes(&self) -> usize {
        self.entries.len() * ENTRY_BYTES + self.pending.len() * 8
    }

    /// Checks that a table and pending bits can be of this function. They have the right length.
    pub(super) fn check(&self, from: &[u8]) -> Result<(), StateError> {
        let (entries, pending) = from.split_at_checked(self.entries.len() * ENTRY_BYTES).unwrap_or_default();
        let is_possible = |entry: &MsixEntry| entry.control.get() & !MASKED == 0 && entry.address.get() & 0b11 == 0;
        if !<[MsixEntry]>::ref_from_bytes(entries).is_ok_and(|entries| entries.iter().all(is_possible)) {
            return Err(StateError { field: "pci.functions.msix", reason: "a bit is set that always reads as zero" });
        }
        let used = usize::from(self.place.vectors);
        let is_there = |(index, byte): (usize, &u8)| (0..8).all(|bit| byte >> bit & 1 == 0 || index * 8 + bit < used);
        if !pending.iter().enumerate().all(is_there) {
            return Err(StateError { field: "pci.functions.msix", reason: "a vector is pending that is not there" });
        }
        Ok(())
    }

    /// Goes on from a table and pending bits that have been checked.
    pub(super) fn restore(&mut self, from: &[u8]) {
        let (entries, pending) = from.split_at_checked(self.entries.len() * ENTRY_BYTES).unwrap_or_default();
        let saved = entries.chunks_exact(ENTRY_BYTES).filter_map(|entry| MsixEntry::read_from_bytes(entry).ok());
        let saved = saved.map(|entry| (entry.address.get(), entry.data.get(), entry.control.get()));
        self.entries.iter_mut().zip(saved).for_each(|(entry, saved)| *entry = saved);
        let (words, _) = pending.as_chunks::<8>();
        self.pending.iter_mut().zip(words).for_each(|(word, saved)| *word = u64::from_le_bytes(*saved));
    }

    fn control(&self, registers: &Registers) -> u16 {
        registers.u32(self.at).wrapping_shr(16) as u16
    }

    /// Returns whether an access is to the table (true) or the pending bits (false), and where in it.
    fn find(&self, at: At) -> Option<(bool, usize)> {
        let within = |start: u32, bytes: usize| {
            let offset = at.offset.checked_sub(u64::from(start))?;
            (offset < bytes as u64).then_some(offset as usize)
        };
        let table = || within(self.place.table, self.entries.len() * ENTRY_BYTES).map(|offset| (true, offset));
        let pending = || within(self.place.pending, self.pending.len() * 8).map(|offset| (false, offset));
        let in_table = if at.range == self.place.bar { table() } else { None };
        in_table.or_else(|| if at.range == self.place.pending_bar { pending() } else { None })
    }

    fn entry_dword(&self, offset: usize) -> Option<u32> {
        let (address, data, control) = *self.entries.get(offset / ENTRY_BYTES)?;
        Some([address as u32, (address >> 32) as u32, data, control][offset % ENTRY_BYTES / 4])
    }

    fn set_entry_dword(&mut self, offset: usize, value: u32) {
        let Some((address, data, control)) = self.entries.get_mut(offset / ENTRY_BYTES) else { return };
        match offset % ENTRY_BYTES / 4 {
            0 => *address = *address & !0xffff_ffff | u64::from(value & !0b11),
            1 => *address = *address & 0xffff_ffff | u64::from(value) << 32,
            2 => *data = value,
            _ => *control = value & MASKED,
        }
    }

    fn pending_dword(&self, offset: usize) -> Option<u32> {
        Some((self.pending.get(offset / 8)? >> (offset % 8 * 8)) as u32)
    }
}

fn is_defined(at: At) -> bool {
    matches!(at.size, AccessSize::Dword | AccessSize::Qword) && at.offset.is_multiple_of(at.size.bytes() as u64)
}
