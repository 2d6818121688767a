// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest's physical address space: its nested page tables.

use paging::Nested;
use vm::cpu::cpuid::Speculation;
use vm::vcpu::EntryState;

use super::cpu_traits::CpuTraits;
use super::vcpu::SvmVcpu;
use crate::arch::guest_memory::GuestRam;
use crate::arch::guest_tables::GuestTables;
use crate::arch::memory::largest_page;
use crate::arch::unavailable::OutOfMemory;

/// A guest's nested page tables.
pub struct NestedSpace {
    tables: GuestTables<Nested>,
    traits: CpuTraits,
}

impl NestedSpace {
    /// Tables that show `memory` and nothing else.
    pub fn new(memory: &GuestRam, traits: CpuTraits) -> Result<Self, OutOfMemory> {
        Ok(Self { tables: GuestTables::new(memory, largest_page())?, traits })
    }

    pub fn create_vcpu(&self, guest: u32, entry: &EntryState, offered: Speculation) -> Result<SvmVcpu, OutOfMemory> {
        SvmVcpu::new(self.traits, self.tables.root(), guest, entry, offered)
    }

    /// The guest's tables. Device memory is uncached for the guest, too, unless it asks for write combining (section
    /// 15.25.8).
    pub fn tables(&self) -> &GuestTables<Nested> {
        &self.tables
    }
}
