// SPDX-License-Identifier: MIT OR Apache-2.0
//! PEBS, Intel's precise samples: a counter that overflows has the CPU write a record of what it just did into
//! its user's memory, without an interrupt until the buffer is nearly full (Intel SDM vol. 3, sections 20.6.2.4
//! and 20.9).
//!
//! The addresses are the user's own linear ones, translated as its accesses are: what it reports there is read and
//! written with its rights, by the CPU alone, and never checked here. That holds only while the user runs, so PEBS is
//! off whenever it does not ([`Pebs::leave`]). And the records are by the CPU's numbers of counters: only those
//! count for the user whose event is on the counter of the same number, else another's event would write into its
//! memory.

mod layout;

pub use layout::{Group, ds, record_bytes};

use crate::refused::Refused;
use crate::{CounterSet, Msrs};

/// Registers.
#[allow(missing_docs)]
pub mod number {
    pub const ENABLE: u32 = 0x3f1;
    pub const DATA_CONFIG: u32 = 0x3f2;
    pub const DS_AREA: u32 = 0x600;
}
use number::*;

/// IA32_PERF_GLOBAL_STATUS: the buffer is full as far as its user wants to know. Written to the clear register, it
/// clears it.
pub const STATUS_BUFFER: u64 = 1 << 62;
/// IA32_PERFEVTSEL: a counter's records are as [`number::DATA_CONFIG`] states, not the shortest.
pub const SELECT_ADAPTIVE: u64 = 1 << 34;

/// The same bit of a counter of fixed purpose, in its control register.
pub const fn fixed_adaptive(number: u8) -> u64 {
    1 << (32 + 4 * number as u32)
}

/// PEBS as a CPU has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Description {
    /// Counters that can write records.
    pub counters: CounterSet,
    /// Bits of a linear address: 48, or 57 with five levels of page tables.
    pub linear_bits: u8,
    /// Records can have the last branches.
    pub has_branches: bool,
}

/// Registers that report whether a guest can be given PEBS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enumeration {
    /// CPUID leaf 1.
    pub leaf_1_ecx: u32,
    /// See above.
    pub leaf_1_edx: u32,
    /// IA32_PERF_CAPABILITIES.
    pub capabilities: u64,
    /// IA32_MISC_ENABLE.
    pub misc_enable: u64,
    /// A record that meets a page missing in the nested tables waits for it, as any access does. No register states
    /// this: Ice Lake's server CPUs and later ones do. On others a guest could lose records by it, or stop the
    /// CPU.
    pub survives_nested_faults: bool,
}

impl Description {
    /// `None` where a guest cannot have it. Only the adaptive records of format 4 and later are known here: the CPU
    /// that has the faults in hand has those.
    pub const fn find(
        enumeration: &Enumeration,
        counters: CounterSet,
        linear_bits: u8,
        has_branches: bool,
    ) -> Option<Self> {
        const DTES64: u32 = 1 << 2;
        const DS: u32 = 1 << 21;
        const UNAVAILABLE: u64 = 1 << 12;
        const BASELINE: u64 = 1 << 14;
        let has_store = enumeration.leaf_1_ecx & DTES64 != 0 && enumeration.leaf_1_edx & DS != 0;
        let has_records = enumeration.capabilities & BASELINE != 0 && enumeration.capabilities >> 8 & 0xf >= 4;
        let is_on = enumeration.misc_enable & UNAVAILABLE == 0 && enumeration.survives_nested_faults;
        if has_store && has_records && is_on { Some(Self { counters, linear_bits, has_branches }) } else { None }
    }

    const fn data_config(&self) -> u64 {
        const COMMON: u64 = Group::MEMORY | Group::REGISTERS | Group::VECTORS;
        if self.has_branches { COMMON | Group::BRANCHES | Group::BRANCH_COUNT } else { COMMON }
    }

    const fn is_canonical(&self, address: u64) -> bool {
        let shift = 64 - self.linear_bits as u32;
        ((address << shift) as i64 >> shift) as u64 == address
    }
}

/// One user's PEBS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pebs {
    description: Description,
    enable: u64,
    data_config: u64,
    ds_area: u64,
    /// Its buffer has been reported as full.
    is_full: bool,
    /// Its addresses are in the CPU.
    is_loaded: bool,
}

impl Pebs {
    /// As after power-on: off.
    pub const fn new(description: Description) -> Self {
        Self { description, enable: 0, data_config: 0, ds_area: 0, is_full: false, is_loaded: false }
    }

    /// Counters that are to write records.
    pub const fn enabled(&self) -> CounterSet {
        CounterSet(self.enable)
    }

    /// Counters that can.
    pub const fn counters(&self) -> CounterSet {
        self.description.counters
    }

    /// RDMSR of one of its registers.
    pub const fn read(&self, number: u32) -> Option<u64> {
        match number {
            ENABLE => Some(self.enable),
            DATA_CONFIG => Some(self.data_config),
            DS_AREA => Some(self.ds_area),
            _ => None,
        }
    }

    /// WRMSR of one of its registers, by a user that does not run meanwhile.
    ///
    /// # Errors
    /// [`Refused`] if there is none of this number, a reserved bit is set, or the address is not canonical.
    pub fn write(&mut self, msrs: &mut impl Msrs, number: u32, value: u64) -> Result<(), Refused> {
        let (is_valid, register) = match number {
            ENABLE => (value & !self.description.counters.0 == 0, &mut self.enable),
            DATA_CONFIG => (value & !self.description.data_config() == 0, &mut self.data_config),
            DS_AREA => (self.description.is_canonical(value), &mut self.ds_area),
            _ => return Err(Refused),
        };
        if !is_valid {
            return Err(Refused);
        }
        *register = value;
        if self.is_loaded && number != ENABLE {
            msrs.write(number, value);
        }
        Ok(())
    }

    /// Its status bit, if it is set.
    pub const fn status(&self) -> u64 {
        if self.is_full { STATUS_BUFFER } else { 0 }
    }

    /// It writes the status' clear register.
    pub const fn clear_status(&mut self, value: u64) {
        self.is_full &= value & STATUS_BUFFER == 0;
    }

    /// The user runs from now on; `assigned` has the counters that have its events of the same number.
    pub fn enter(&mut self, msrs: &mut impl Msrs, assigned: CounterSet) {
        let live = self.enable & assigned.0;
        if live == 0 {
            return;
        }
        if !self.is_loaded {
            msrs.write(DS_AREA, self.ds_area);
            msrs.write(DATA_CONFIG, self.data_config);
            self.is_loaded = true;
        }
        msrs.write(ENABLE, live);
    }

    /// It does not run any more: before anything else uses linear addresses. Returns whether an interrupt is due.
    pub fn leave(&mut self, msrs: &mut impl Msrs) -> bool {
        if !self.is_loaded {
            return false;
        }
        msrs.write(ENABLE, 0);
        let is_reported = msrs.read(crate::intel::number::GLOBAL_STATUS) & STATUS_BUFFER != 0;
        if is_reported {
            msrs.write(crate::intel::number::GLOBAL_CLEAR, STATUS_BUFFER);
            self.is_full = true;
        }
        is_reported
    }

    /// Another's turn: nothing of it is left. Records, and how many there are, are in its own memory.
    pub fn switch_out(&mut self, msrs: &mut impl Msrs) {
        if self.is_loaded {
            msrs.write(DS_AREA, 0);
            msrs.write(DATA_CONFIG, 0);
            self.is_loaded = false;
        }
    }
}
