// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest's physical address space: its nested page tables.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use paging::{Flags, MapError, Nested, TableMemory, Tables};
use spin::Mutex;
use units::{PageSize, PhysAddr, PhysRange};
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
    tables: Mutex<NestedTables>,
    /// How often something was hidden.
    changes: AtomicU64,
    root: PhysAddr,
    traits: CpuTraits,
}

struct NestedTables {
    tables: Option<Tables<Nested>>,
    /// Tables that were left empty, and the change by which: a CPU may still walk them.
    retired: Vec<(u64, PhysAddr)>,
}

/// Frames for tables that CPUs walk: those left empty are kept.
struct Walked<'a> {
    frames: TableFrames,
    retired: &'a mut Vec<(u64, PhysAddr)>,
    change: u64,
}

impl NestedSpace {
    /// Tables that show `memory` and nothing else.
    pub fn new(memory: &GuestRam, traits: CpuTraits) -> Result<Self, OutOfMemory> {
        let largest = if cpu::cpuid(0x8000_0001, 0).edx & (1 << 26) != 0 { PageSize::Gib1 } else { PageSize::Mib2 };
        let mut frames = TableFrames::anywhere();
        let tables = Tables::new(&mut frames, largest).map_err(|_| OutOfMemory)?;
        let root = tables.root();
        let tables = NestedTables { tables: Some(tables), retired: Vec::new() };
        let space = Self { root, tables: Mutex::new(tables), changes: AtomicU64::new(0), traits };
        for slot in memory.slots() {
            let range = PhysRange::from_start(PhysAddr(slot.physical), slot.bytes).ok_or(OutOfMemory)?;
            space.show(slot.gpa, range, Flags::empty()).map_err(|_| OutOfMemory)?;
        }
        Ok(space)
    }

    pub fn create_vcpu(&self, guest: u32, entry: &EntryState, offered: Speculation) -> Result<SvmVcpu, OutOfMemory> {
        SvmVcpu::new(self.traits, self.root, guest, entry, offered)
    }

    pub fn root(&self) -> u64 {
        self.root.0
    }

    /// Section 15.25.8: uncached for the guest, too, but where it asks for write combining.
    pub fn show_device(&self, gpa: u64, range: PhysRange) -> Result<(), MapError> {
        self.show(gpa, range, Flags::CACHE_DISABLE)
    }

    fn show(&self, gpa: u64, range: PhysRange, caching: Flags) -> Result<(), MapError> {
        let flags = Flags::WRITABLE | Flags::USER | caching;
        self.change(|tables, frames| tables.map(frames, gpa, range.start(), range.bytes(), flags))
    }

    pub fn hide(&self, gpa: u64, bytes: u64) -> Result<(), MapError> {
        self.change(|tables, frames| {
            let result = tables.unmap(frames, gpa, bytes);
            // A CPU that reads this number flushes its TLB after the change.
            self.changes.store(frames.change, Ordering::Release);
            result
        })
    }

    fn change(
        &self,
        act: impl FnOnce(&mut Tables<Nested>, &mut Walked<'_>) -> Result<(), MapError>,
    ) -> Result<(), MapError> {
        let mut this = self.tables.lock();
        let NestedTables { tables: Some(tables), retired } = &mut *this else { return Ok(()) };
        let change = self.changes() + 1;
        act(tables, &mut Walked { frames: TableFrames::anywhere(), retired, change })
    }

    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    pub fn reclaim(&self, change: u64) {
        let mut this = self.tables.lock();
        this.retired.retain(|&(retired_by, table)| {
            let is_walked = retired_by > change;
            if !is_walked {
                TableFrames::anywhere().free(table);
            }
            is_walked
        });
    }
}

impl TableMemory for Walked<'_> {
    fn allocate(&mut self) -> Option<PhysAddr> {
        self.frames.allocate()
    }

    fn free(&mut self, table: PhysAddr) {
        self.retired.push((self.change, table));
    }

    fn read(&self, table: PhysAddr, index: usize) -> u64 {
        self.frames.read(table, index)
    }

    fn write(&mut self, table: PhysAddr, index: usize, entry: u64) {
        self.frames.write(table, index, entry);
    }
}

impl Drop for NestedSpace {
    fn drop(&mut self) {
        self.reclaim(u64::MAX);
        if let Some(tables) = self.tables.get_mut().tables.take() {
            tables.free_all(&mut TableFrames::anywhere());
        }
    }
}
