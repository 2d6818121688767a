// SPDX-License-Identifier: MIT OR Apache-2.0
//! The model's handling of a request: device table, I/O page tables, interrupt remapping tables, and copies of them.

use std::collections::BTreeMap;

use super::super::registers::*;
use super::hardware::State;

/// A translation: the physical page, and whether it may be read and written. `None`: absent.
type Page = Option<(u64, bool, bool)>;

#[derive(Default)]
pub struct Caches {
    /// Device table entries by requester.
    pub entries: BTreeMap<u16, [u64; 4]>,
    /// Translations by domain and page.
    pages: BTreeMap<(u16, u64), Page>,
    /// Lowest tables by domain and address in 2 MiB, with the rights on the way to them.
    tables: BTreeMap<(u16, u64), (u64, bool, bool)>,
    /// Interrupts by requester and index.
    pub interrupts: BTreeMap<(u16, u64), [u64; 2]>,
}

impl Caches {
    /// Returns whether the unit would still read this frame as a table.
    pub fn have_table(&self, frame: u64) -> bool {
        let is_named = |entry: &[u64; 4]| {
            let levels = entry[0] >> 9 & 0b111;
            levels != 0 && entry[0] & ADDRESS == frame || entry[2] >> 60 & 0b11 == 2 && entry[2] & ADDRESS == frame
        };
        self.entries.values().any(is_named) || self.tables.values().any(|(table, ..)| *table == frame)
    }

    /// `INVALIDATE_IOMMU_PAGES`, second word: S in bit 0, PDE in bit 1, GN in bit 2.
    pub fn invalidate_pages(&mut self, domain: u16, operand: u64) {
        assert_eq!(operand & 0xffc, 0, "a reserved bit is set");
        let order = if operand & 1 == 0 { 0 } else { (operand >> 12).trailing_ones() + 1 };
        let block = |address: u64| (address >> 12).checked_shr(order).unwrap_or(0);
        let is_meant = |id: u16, address: u64| id == domain && block(address) == block(operand);
        self.pages.retain(|(id, page), _| !is_meant(*id, page << 12));
        if operand & 2 != 0 {
            let touches = |id: u16, part: u64| {
                id == domain && (order >= 9 && block(part << 21) == block(operand) || part == operand >> 21)
            };
            self.tables.retain(|(id, part), _| !touches(*id, *part));
        }
    }
}

const ENTRY_VALID: u64 = 0b11;
const PR: u64 = 1 << 52;
const RW: u64 = 1 << 53;
const PE: u64 = 1 << 54;
const RZ: u64 = 1 << 55;
const I: u64 = 1 << 51;
/// Of a device table entry's second and third word.
const SA: u64 = 1 << 34;
const IG: u64 = 1 << 5;

/// The code and the flags of a refusal.
pub type Refusal = u64;

const PAGE_FAULT: u64 = 2 << 60;
const ILLEGAL_ENTRY: u64 = 1 << 60;

impl State {
    /// Performs an access by a function: returns the physical address, or the event.
    pub fn reach(&mut self, requester: u16, address: u64, is_write: bool) -> Result<u64, Refusal> {
        if self.register(CONTROL) & control::ENABLE == 0 {
            return Ok(address);
        }
        let entry = self.entry(requester)?;
        if entry[0] & 1 == 0 {
            return Ok(address);
        }
        assert_eq!(entry[0] & ENTRY_VALID, ENTRY_VALID, "entries here are valid throughout");
        let rights = (entry[0] & 1 << 61 != 0, entry[0] & 1 << 62 != 0);
        let page = match entry[0] >> 9 & 0b111 {
            0 => Some((address & !4095, rights.0, rights.1)),
            _ => self.translation(&entry, address)?.map(|(at, r, w)| (at, r && rights.0, w && rights.1)),
        };
        match page {
            None => Err(PAGE_FAULT),
            Some((at, _, true)) if is_write => Ok(at | address & 4095),
            Some((at, true, _)) if !is_write => Ok(at | address & 4095),
            Some(_) if is_write => Err(PAGE_FAULT | PR | PE | RW),
            Some(_) => Err(PAGE_FAULT | PR | PE),
        }
    }

    /// Runs [`State::reach`], and logs a refusal unless SA is set.
    pub fn access(&mut self, requester: u16, address: u64, is_write: bool) -> Option<u64> {
        let refusal = match self.reach(requester, address, is_write) {
            Ok(reached) => return Some(reached),
            Err(refusal) => refusal,
        };
        if self.entry(requester).is_ok_and(|entry| entry[1] & SA == 0) {
            self.log([refusal | u64::from(requester), address]);
        }
        None
    }

    /// Runs [`State::interrupt`], and logs a refusal unless IG is set.
    pub fn send(&mut self, requester: u16, data: u32) {
        let refused = self.interrupt(requester, data).err();
        let Some(refusal) = refused else { return };
        if self.entry(requester).is_ok_and(|entry| entry[2] & IG == 0) {
            self.log([refusal | u64::from(requester), 0xfee0_0000]);
        }
    }

    fn entry(&mut self, requester: u16) -> Result<[u64; 4], Refusal> {
        if let Some(entry) = self.caches.entries.get(&requester) {
            return Ok(*entry);
        }
        let register = self.register(DEVICE_TABLE_BASE);
        let (base, bytes) = (register & ADDRESS, ((register & 0x1ff) + 1) * 4096);
        let offset = u64::from(requester) * 32;
        if offset >= bytes {
            return Err(ILLEGAL_ENTRY);
        }
        let entry = [0, 8, 16, 24].map(|word| self.load(base + offset + word));
        self.caches.entries.insert(requester, entry);
        Ok(entry)
    }

    fn translation(&mut self, entry: &[u64; 4], address: u64) -> Result<Page, Refusal> {
        let key = (entry[1] as u16, address >> 12);
        if let Some(page) = self.caches.pages.get(&key) {
            return Ok(*page);
        }
        let page = self.walk(entry, address)?;
        self.caches.pages.insert(key, page);
        Ok(page)
    }

    fn walk(&mut self, entry: &[u64; 4], address: u64) -> Result<Page, Refusal> {
        let part = (entry[1] as u16, address >> 21);
        let mut level = entry[0] >> 9 & 0b111;
        let (mut table, mut read, mut write) = (entry[0] & ADDRESS, true, true);
        if level < 6 && address >> (12 + 9 * level) != 0 {
            return Ok(None);
        }
        if let Some(cached) = self.caches.tables.get(&part) {
            (table, read, write) = *cached;
            level = 1;
        }
        loop {
            let entry = self.load(table + 8 * (address >> (12 + 9 * (level - 1)) & 511));
            if entry & 1 == 0 {
                return Ok(None);
            }
            (read, write) = (read && entry & 1 << 61 != 0, write && entry & 1 << 62 != 0);
            let next = entry >> 9 & 0b111;
            if next == 0 {
                let offset = (1 << (12 + 9 * (level - 1))) - 1;
                if entry & ADDRESS & offset != 0 {
                    return Err(PAGE_FAULT | PR | RZ);
                }
                return Ok(Some((entry & ADDRESS | address & offset & !4095, read, write)));
            }
            if next >= level || next == 7 {
                return Err(PAGE_FAULT | PR | RZ);
            }
            (table, level) = (entry & ADDRESS, next);
            if level == 1 {
                self.caches.tables.insert(part, (table, read, write));
            }
        }
    }

    /// Sends a fixed interrupt by message: returns the vector and the destination, or the event.
    pub fn interrupt(&mut self, requester: u16, data: u32) -> Result<(u8, u32), Refusal> {
        let entry = self.entry(requester)?;
        if self.register(CONTROL) & control::ENABLE == 0 || entry[2] & 1 == 0 || entry[2] >> 60 & 0b11 == 1 {
            return Ok((data as u8, 0));
        }
        let index = u64::from(data & 0x7ff);
        let is_within = entry[2] >> 60 & 0b11 == 2 && index < 1 << (entry[2] >> 1 & 0xf);
        let found = if is_within { self.remapped(requester, entry[2], index) } else { [0, 0] };
        if found[0] & 1 == 0 {
            return Err(PAGE_FAULT | I);
        }
        let control = self.register(CONTROL);
        Ok(match (control & control::WIDE_INTERRUPTS != 0, control & control::X2APIC != 0) {
            (false, _) => ((found[0] >> 16) as u8, (found[0] >> 8) as u8 as u32),
            (true, false) => (found[1] as u8, (found[0] >> 8) as u8 as u32),
            (true, true) => (found[1] as u8, (found[0] >> 8) as u32 & 0xff_ffff | (found[1] >> 56 << 24) as u32),
        })
    }

    fn remapped(&mut self, requester: u16, word: u64, index: u64) -> [u64; 2] {
        if let Some(found) = self.caches.interrupts.get(&(requester, index)) {
            return *found;
        }
        let table = word & 0x000f_ffff_ffff_ff80;
        let found = if self.register(CONTROL) & control::WIDE_INTERRUPTS == 0 {
            let pair = self.load(table + index / 2 * 8);
            [pair >> (index % 2 * 32) & u64::from(u32::MAX), 0]
        } else {
            [self.load(table + index * 16), self.load(table + index * 16 + 8)]
        };
        self.caches.interrupts.insert((requester, index), found);
        found
    }
}
