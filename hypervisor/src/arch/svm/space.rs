// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest's physical address space: its nested page tables.

use paging::{MapError, Nested};
use units::PhysRange;
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

    pub fn root(&self) -> u64 {
        self.tables.root().0
    }

    /// Section 15.25.8: uncached for the guest, too, but where it asks for write combining.
    pub fn show_device(&self, gpa: u64, range: PhysRange) -> Result<(), MapError> {
        self.tables.show_device(gpa, range)
    }

    pub fn hide(&self, gpa: u64, bytes: u64) -> Result<(), MapError> {
        self.tables.hide(gpa, bytes)
    }

    pub fn changes(&self) -> u64 {
        self.tables.changes()
    }

    pub fn reclaim(&self, change: u64) {
        self.tables.reclaim(change);
    }
}
