// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest's physical address space: its extended page tables.

use units::PageSize;
use vm::vcpu::EntryState;
use vmx::Settings;
use vmx::ept::Ept;

use super::vcpu::VmxVcpu;
use crate::arch::guest_memory::GuestRam;
use crate::arch::guest_tables::GuestTables;
use crate::arch::unavailable::OutOfMemory;

/// A guest's extended page tables.
pub struct EptSpace {
    tables: GuestTables<Ept>,
    settings: &'static Settings,
}

impl EptSpace {
    /// Tables that show `memory` and nothing else.
    pub fn new(memory: &GuestRam, settings: &'static Settings) -> Result<Self, OutOfMemory> {
        let has_gib_pages = settings.capabilities().ept_vpid.pages_1_gib();
        let largest = if has_gib_pages { PageSize::Gib1 } else { PageSize::Mib2 };
        Ok(Self { tables: GuestTables::new(memory, largest)?, settings })
    }

    pub fn create_vcpu(&self, guest: u32, entry: &EntryState) -> Result<VmxVcpu, OutOfMemory> {
        VmxVcpu::new(self.settings, self.tables.root(), guest, entry)
    }

    /// The guest's tables. Device memory is uncached whatever the guest asks for.
    pub fn tables(&self) -> &GuestTables<Ept> {
        &self.tables
    }
}
