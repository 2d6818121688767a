// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest's physical address space: its nested page tables.

use paging::{Flags, MapError, Nested, Tables};
use units::{PageSize, PhysAddr};
use vm::cpu::cpuid::Speculation;
use vm::vcpu::EntryState;

use super::cpu_traits::CpuTraits;
use super::vcpu::SvmVcpu;
use crate::arch::cpu;
use crate::arch::guest_memory::GuestRam;
use crate::arch::memory::TableFrames;
use crate::arch::unavailable::OutOfMemory;

/// A guest's nested page tables.
pub struct NestedSpace {
    tables: Option<Tables<Nested>>,
    root: PhysAddr,
    traits: CpuTraits,
}

impl NestedSpace {
    /// Tables that show `memory` and nothing else.
    pub fn new(memory: &GuestRam, traits: CpuTraits) -> Result<Self, OutOfMemory> {
        let largest = if cpu::cpuid(0x8000_0001, 0).edx & (1 << 26) != 0 { PageSize::Gib1 } else { PageSize::Mib2 };
        let mut frames = TableFrames::anywhere();
        let tables = Tables::new(&mut frames, largest).map_err(|_| OutOfMemory)?;
        let mut space = Self { root: tables.root(), tables: Some(tables), traits };
        for slot in memory.slots() {
            space.show(slot.gpa, PhysAddr(slot.physical), slot.bytes).map_err(|_| OutOfMemory)?;
        }
        Ok(space)
    }

    pub fn create_vcpu(&self, guest: u32, entry: &EntryState, offered: Speculation) -> Result<SvmVcpu, OutOfMemory> {
        SvmVcpu::new(self.traits, self.root, guest, entry, offered)
    }

    pub fn root(&self) -> u64 {
        self.root.0
    }

    fn show(&mut self, gpa: u64, physical: PhysAddr, bytes: u64) -> Result<(), MapError> {
        let flags = Flags::WRITABLE | Flags::USER;
        match &mut self.tables {
            Some(tables) => tables.map(&mut TableFrames::anywhere(), gpa, physical, bytes, flags),
            None => Ok(()),
        }
    }
}

impl Drop for NestedSpace {
    fn drop(&mut self) {
        if let Some(tables) = self.tables.take() {
            tables.free_all(&mut TableFrames::anywhere());
        }
    }
}
