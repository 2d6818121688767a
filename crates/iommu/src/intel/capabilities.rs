// SPDX-License-Identifier: MIT OR Apache-2.0
//! A unit's capabilities (sections 11.4.2 and 11.4.3), checked: it may be an emulator's, or read as all ones.

use units::PageSize;

use crate::domain::DomainId;
use crate::hardware::Registers;
use crate::intel::registers::{CAPABILITY, EXTENDED_CAPABILITY, VERSION};
use crate::problem::Problem;

/// The bit of CAP.SAGAW for three levels, and that for four.
const THREE_LEVELS: u64 = 1 << 1;
const FOUR_LEVELS: u64 = 1 << 2;
const FAULT_RECORD_BYTES: u32 = 16;

/// The capability registers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Capabilities {
    base: u64,
    extended: u64,
}

impl Capabilities {
    /// Reads and checks them; `window_bytes` bytes of registers can be reached.
    pub(super) fn read(registers: &mut impl Registers, window_bytes: u32) -> Result<Self, Problem> {
        let version = registers.read32(VERSION);
        if version == 0 || version == u32::MAX {
            return Err(Problem::Absurd { register: "VER", value: version.into() });
        }
        let base = registers.read64(CAPABILITY);
        let extended = registers.read64(EXTENDED_CAPABILITY);
        let found = Self { base, extended };
        if base == u64::MAX || field(base, 0, 3) == 7 || found.fault_records_end() > window_bytes {
            return Err(Problem::Absurd { register: "CAP", value: base });
        }
        if extended == u64::MAX {
            return Err(Problem::Absurd { register: "ECAP", value: extended });
        }
        found.check()
    }

    fn check(self) -> Result<Self, Problem> {
        if !bit(self.extended, 1) {
            return Err(Problem::Lacks { feature: "queued invalidation (ECAP.QI)" });
        }
        match field(self.base, 8, 5) & (THREE_LEVELS | FOUR_LEVELS) {
            0 => Err(Problem::Lacks { feature: "second-stage tables of three or four levels (CAP.SAGAW)" }),
            _ => Ok(self),
        }
    }

    /// Returns whether four levels are walked; else three are.
    pub(super) fn has_four_levels(self) -> bool {
        field(self.base, 8, 5) & FOUR_LEVELS != 0
    }

    /// Returns the first device address that is not translated. Of three levels the last GiB is left out: its entry
    /// keeps the top table from being empty, see `tables`.
    pub(super) fn address_limit(self) -> u64 {
        let walked = if self.has_four_levels() { 1 << 48 } else { (1 << 39) - units::GIB };
        walked.min(1 << (field(self.base, 16, 6) + 1).min(63))
    }

    pub(super) fn largest_page(self) -> PageSize {
        match (bit(self.base, 34), bit(self.base, 35)) {
            (true, true) => PageSize::Gib1,
            (true, false) => PageSize::Mib2,
            (false, _) => PageSize::Kib4,
        }
    }

    /// Returns whether a domain may have this number: 0 tags what a caching unit holds of absent entries.
    pub(super) fn has_domain(self, id: DomainId) -> bool {
        id.0 != 0 && u64::from(id.0) < 1 << (4 + 2 * field(self.base, 0, 3))
    }

    /// Returns whether the unit snoops the CPUs' caches when it reads tables.
    pub(super) fn is_coherent(self) -> bool {
        bit(self.extended, 0)
    }

    /// Returns whether it caches absent entries, too.
    pub(super) fn caches_absent(self) -> bool {
        bit(self.base, 7)
    }

    pub(super) fn needs_write_buffer_flush(self) -> bool {
        bit(self.base, 4)
    }

    pub(super) fn has_protected_memory(self) -> bool {
        bit(self.base, 5) || bit(self.base, 6)
    }

    /// Returns whether protected regions can cover all memory.
    pub(super) fn can_protect_all(self) -> bool {
        bit(self.base, 5) && bit(self.base, 6)
    }

    /// Returns whether writes and reads under way can be drained by an invalidation.
    pub(super) fn drains(self) -> (bool, bool) {
        (bit(self.base, 54), bit(self.base, 55))
    }

    /// Returns the largest address mask of a page-selective invalidation: 2 to its power are the pages. `None` without
    /// them.
    pub(super) fn largest_mask(self) -> Option<u32> {
        bit(self.base, 39).then(|| field(self.base, 48, 6) as u32)
    }

    pub(super) fn can_remap_interrupts(self) -> bool {
        bit(self.extended, 3)
    }

    pub(super) fn has_extended_interrupts(self) -> bool {
        bit(self.extended, 4)
    }

    /// Returns the offset of fault record `index`, and how many there are.
    pub(super) fn fault_record(self, index: u32) -> u32 {
        field(self.base, 24, 10) as u32 * FAULT_RECORD_BYTES + index * FAULT_RECORD_BYTES
    }

    pub(super) fn fault_records(self) -> u32 {
        field(self.base, 40, 8) as u32 + 1
    }

    fn fault_records_end(self) -> u32 {
        self.fault_record(self.fault_records())
    }
}

const fn bit(register: u64, number: u32) -> bool {
    register >> number & 1 != 0
}

const fn field(register: u64, first: u32, bits: u32) -> u64 {
    register >> first & ((1 << bits) - 1)
}
