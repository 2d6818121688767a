// SPDX-License-Identifier: MIT OR Apache-2.0
//! Translation in the model (sections 3.4 and 3.7), in legacy mode.

use crate::intel::model::hardware::{Cached, Hardware};
use crate::intel::model::memory::Ram;

const TRANSLATION: u32 = 1 << 31;
const FAULTS_DISABLED: u64 = 1 << 1;
const ADDRESS: u64 = 0x000f_ffff_ffff_f000;
/// Not a reason of the specification: protected memory, or a mode that the model does not walk.
const OTHERWISE: u8 = 0xff;

impl Hardware {
    /// Performs a function's access. Found entries are cached; absent ones, too, if the unit caches those.
    pub(super) fn access(&mut self, ram: &Ram, requester: u16, address: u64, is_write: bool) -> Result<u64, u8> {
        if self.protected != 0 || self.status & TRANSLATION != 0 && self.root_in_use & 3 << 10 != 0 {
            return Err(OTHERWISE);
        }
        if self.status & TRANSLATION == 0 {
            return Ok(address);
        }
        let found = self.translate(ram, requester, address, is_write);
        if let Err(reason) = found
            && !self.disables_faults(ram, requester)
        {
            self.record(requester, address & !0xfff, !is_write, reason);
        }
        found
    }

    fn translate(&mut self, ram: &Ram, requester: u16, address: u64, is_write: bool) -> Result<u64, u8> {
        let [low, high] = self.context(ram, requester)?;
        let (domain, levels) = ((high >> 8) as u16, high as u8 % 8 + 2);
        let width = (self.capability >> 16 & 0x3f) + 1;
        if address >> (u64::from(levels) * 9 + 12).min(width) != 0 {
            return Err(4);
        }
        let page = match self.pages.get(&(domain, address >> 12)) {
            Some(page) => *page,
            None => {
                let page = self.walk(ram, domain, low & !0xfff, levels, address)?;
                if page.is_some() || self.caches_absent() {
                    self.pages.insert((domain, address >> 12), page);
                }
                page
            }
        };
        match page {
            Some((frame, may_write)) if may_write || !is_write => {
                self.under_way.insert(domain);
                Ok(frame | address & 0xfff)
            }
            _ => Err(if is_write { 5 } else { 6 }),
        }
    }

    fn context(&mut self, ram: &Ram, requester: u16) -> Result<[u64; 2], u8> {
        if let Some((_, context)) = self.contexts.get(&requester) {
            return if context[0] & 1 != 0 { Ok(*context) } else { Err(2) };
        }
        let found = self.read_context(ram, requester);
        match found {
            Ok(context) => {
                self.contexts.insert(requester, ((context[1] >> 8) as u16, context));
            }
            Err(1 | 2) if self.caches_absent() => {
                let low = self.low_of_context(ram, requester) & FAULTS_DISABLED;
                self.contexts.insert(requester, (0, [low, 0]));
            }
            Err(_) => {}
        }
        found
    }

    /// Returns whether FPD is set, which counts in an absent entry, too.
    fn disables_faults(&self, ram: &Ram, requester: u16) -> bool {
        let cached = self.contexts.get(&requester).map(|(_, context)| context[0]);
        cached.unwrap_or_else(|| self.low_of_context(ram, requester)) & FAULTS_DISABLED != 0
    }

    fn low_of_context(&self, ram: &Ram, requester: u16) -> u64 {
        let root = ram.seen((self.root_in_use & !0xfff) + u64::from(requester >> 8) * 16);
        let table = root.filter(|root| root & 1 != 0).map(|root| root & !0xfff);
        table.and_then(|table| ram.seen(table + u64::from(requester & 0xff) * 16)).unwrap_or(0)
    }

    fn read_context(&self, ram: &Ram, requester: u16) -> Result<[u64; 2], u8> {
        let entry = |table: u64, index: u16, reason: u8| -> Result<[u64; 2], u8> {
            let at = table + u64::from(index) * 16;
            Ok([ram.seen(at).ok_or(reason)?, ram.seen(at + 8).ok_or(reason)?])
        };
        let [low, high] = entry(self.root_in_use & !0xfff, requester >> 8, 8)?;
        if low & 1 == 0 {
            return Err(1);
        }
        if low & 0xffe != 0 || high != 0 {
            return Err(0xa);
        }
        let [low, high] = entry(low & !0xfff, requester & 0xff, 9)?;
        if low & 1 == 0 {
            return Err(2);
        }
        let width_is_known = self.capability >> 8 & 1 << (high & 7) != 0;
        let domain = high >> 8 & 0xffff;
        if low & 0xc != 0 || !width_is_known || domain >= 256 || domain == 0 && self.caches_absent() {
            return Err(3);
        }
        if low & 0xff0 != 0 || high >> 24 != 0 || high & 0x80 != 0 { Err(0xb) } else { Ok([low, high]) }
    }

    /// Walks the tables from the lowest one that is cached.
    fn walk(&mut self, ram: &Ram, domain: u16, top: u64, levels: u8, address: u64) -> Result<Cached, u8> {
        let mut table = top;
        let (mut level, mut may_write) = (levels, true);
        if let Some(cached) = (1..levels).find_map(|level| {
            let key = (domain, level, address >> 12 >> (u64::from(level) * 9));
            self.tables.get(&key).map(|table| (level, *table))
        }) {
            (level, table) = cached;
        }
        loop {
            let shift = 12 + (u64::from(level) - 1) * 9;
            let entry = ram.seen(table + (address >> shift & 511) * 8).ok_or(7)?;
            if entry & 3 == 0 {
                return Ok(None);
            }
            may_write &= entry & 2 != 0;
            let is_page = level == 1 || entry & 0x80 != 0;
            let is_reserved = is_page && level > 1 && (level > 3 || self.capability >> (32 + level) & 1 == 0);
            let offset = (1 << shift) - 1;
            if is_reserved || entry & 0x800 != 0 || entry & 1 == 0 || is_page && entry & ADDRESS & offset != 0 {
                return Err(0xc);
            }
            if is_page {
                return Ok(Some((entry & ADDRESS | address & offset & !0xfff, may_write)));
            }
            (level, table) = (level - 1, entry & ADDRESS);
            self.tables.insert((domain, level, address >> 12 >> (u64::from(level) * 9)), table);
        }
    }
}
