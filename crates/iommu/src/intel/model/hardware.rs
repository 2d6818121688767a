// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state of a unit: what its registers hold, and what it has cached.

use std::collections::{BTreeMap, BTreeSet};
use std::vec::Vec;

use proptest::prelude::*;

/// The differences between units.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Features {
    pub(crate) is_coherent: bool,
    pub(crate) buffers_writes: bool,
    pub(crate) caches_absent: bool,
    pub(crate) has_four_levels: bool,
    pub(crate) has_large_pages: bool,
    pub(crate) selects_pages: bool,
    pub(crate) has_protected_memory: bool,
}

impl Features {
    /// Returns a strategy for any unit that can exist.
    pub(crate) fn any() -> impl Strategy<Value = Self> {
        any::<[bool; 6]>().prop_map(|[not_snooped, buffers_writes, caches_absent, short, small, whole]| Self {
            is_coherent: !not_snooped || buffers_writes,
            buffers_writes,
            caches_absent,
            has_four_levels: !short,
            has_large_pages: !small,
            selects_pages: !whole,
            has_protected_memory: true,
        })
    }
}

impl Default for Features {
    fn default() -> Self {
        Self {
            is_coherent: true,
            buffers_writes: false,
            caches_absent: false,
            has_four_levels: true,
            has_large_pages: true,
            selects_pages: true,
            has_protected_memory: true,
        }
    }
}

/// Fault records, and where they are.
pub(super) const RECORDS: usize = 4;
pub(super) const RECORDS_AT: u32 = 0x200;

/// A page as cached: where, and whether it may be written; `None` for an absent one.
pub(super) type Cached = Option<(u64, bool)>;

pub(in crate::intel) struct Hardware {
    pub(in crate::intel) capability: u64,
    pub(in crate::intel) extended: u64,
    pub(in crate::intel) status: u32,
    /// It executes no command.
    pub(in crate::intel) is_unresponsive: bool,
    /// Its queue does not advance.
    pub(in crate::intel) hangs: bool,
    /// It reads as all ones.
    pub(in crate::intel) is_gone: bool,
    /// It finds an error in the next descriptor.
    pub(in crate::intel) errs: bool,
    /// Number of times that translation was disabled while nothing else kept functions from memory.
    pub(in crate::intel) windows: usize,
    /// Writes to registers.
    pub(in crate::intel) writes: usize,
    pub(in crate::intel) root: u64,
    pub(super) root_in_use: u64,
    pub(in crate::intel) interrupts: u64,
    pub(super) interrupts_in_use: u64,
    pub(super) queue: u64,
    pub(super) head: u64,
    pub(super) tail: u64,
    pub(in crate::intel) faults: u32,
    pub(in crate::intel) event_controls: [u32; 2],
    pub(in crate::intel) protected: u32,
    pub(super) records: [[u64; 2]; RECORDS],
    pub(super) next_record: usize,
    /// Context entries with the domain that tags them.
    pub(super) contexts: BTreeMap<u16, (u16, [u64; 2])>,
    /// Pages by domain and number.
    pub(super) pages: BTreeMap<(u16, u64), Cached>,
    /// Tables by domain, level and the part of the address that leads to them.
    pub(super) tables: BTreeMap<(u16, u8, u64), u64>,
    pub(super) remapped: BTreeMap<u16, [u64; 2]>,
    /// Domains by which accesses are still under way.
    pub(in crate::intel) under_way: BTreeSet<u16>,
    /// Every reason for which something was refused.
    pub(in crate::intel) reasons: Vec<u8>,
}

impl Hardware {
    pub(super) fn new(features: Features) -> Self {
        let (capability, extended) = capabilities(features);
        Self {
            capability,
            extended,
            status: 0,
            is_unresponsive: false,
            hangs: false,
            is_gone: false,
            errs: false,
            windows: 0,
            writes: 0,
            root: 0,
            root_in_use: 0,
            interrupts: 0,
            interrupts_in_use: 0,
            queue: 0,
            head: 0,
            tail: 0,
            faults: 0,
            event_controls: [1 << 31; 2],
            protected: 0,
            records: [[0; 2]; RECORDS],
            next_record: 0,
            contexts: BTreeMap::new(),
            pages: BTreeMap::new(),
            tables: BTreeMap::new(),
            remapped: BTreeMap::new(),
            under_way: BTreeSet::new(),
            reasons: Vec::new(),
        }
    }

    /// Puts the unit into another mode for a test.
    pub(in crate::intel) fn set_root_in_use(&mut self) {
        self.root_in_use = self.root;
    }

    /// Moves the queue, or puts work into it, for a test.
    pub(in crate::intel) fn move_queue(&mut self, by: u64, tail: u64) {
        self.queue += by;
        self.tail ^= tail;
    }

    /// Returns whether it would still read this frame as a table.
    pub(in crate::intel) fn caches_table(&self, frame: u64) -> bool {
        let is_top = |(_, context): &(u16, [u64; 2])| context[0] & 1 != 0 && context[0] & !0xfff == frame;
        self.tables.values().any(|table| *table == frame) || self.contexts.values().any(is_top)
    }

    pub(super) fn caches_absent(&self) -> bool {
        self.capability >> 7 & 1 != 0
    }

    /// Records a fault (section 7.2.1), unless records have overflowed.
    pub(super) fn record(&mut self, requester: u16, lower: u64, is_read: bool, reason: u8) {
        self.reasons.push(reason);
        let record = &mut self.records[self.next_record];
        if self.faults & 1 != 0 {
            return;
        }
        if record[1] >> 63 != 0 {
            self.faults |= 1;
            return;
        }
        let kind = 1 << 63 | u64::from(is_read) << 62;
        *record = [lower, kind | u64::from(reason) << 32 | u64::from(requester)];
        if self.faults & 2 == 0 {
            self.faults = self.faults & 0xff | 2 | (self.next_record as u32) << 8;
        }
        self.next_record = (self.next_record + 1) % RECORDS;
    }

    /// Notes that a record was taken: the status register names the oldest that is left.
    pub(super) fn take_record(&mut self, index: usize) {
        self.records[index][1] &= !(1 << 63);
        self.faults &= 0xff & !2;
        let mut rest = (0..RECORDS).map(|step| (self.next_record + step) % RECORDS);
        if let Some(oldest) = rest.find(|index| self.records[*index][1] >> 63 != 0) {
            self.faults |= 2 | (oldest as u32) << 8;
        }
    }
}

fn capabilities(features: Features) -> (u64, u64) {
    let bit = |is_set: bool, number: u32| u64::from(is_set) << number;
    let (levels, width) = if features.has_four_levels { (1 << 2, 47) } else { (1 << 1, 38) };
    let mut base = 2 | levels << 8 | width << 16 | u64::from(RECORDS_AT / 16) << 24;
    base |= (RECORDS as u64 - 1) << 40 | 9 << 48 | 1 << 54 | 1 << 55;
    base |= bit(features.buffers_writes, 4) | bit(features.caches_absent, 7) | bit(features.selects_pages, 39);
    base |= bit(features.has_protected_memory, 5) | bit(features.has_protected_memory, 6);
    base |= bit(features.has_large_pages, 34) | bit(features.has_large_pages, 35);
    (base, bit(features.is_coherent, 0) | 1 << 1 | 1 << 3 | 1 << 4 | 0x10 << 8)
}
