// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tables that make a guest's physical address space, in the format of whichever extension walks them.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use paging::{Flags, Format, MapError, TableMemory, Tables};
use spin::Mutex;
use units::{PageSize, PhysAddr, PhysRange};

use crate::arch::guest_memory::GuestRam;
use crate::arch::memory::TableFrames;
use crate::arch::unavailable::OutOfMemory;

/// A guest's tables.
pub struct GuestTables<F: Format> {
    walked: Mutex<WalkedTables<F>>,
    /// How often something was hidden.
    changes: AtomicU64,
    root: PhysAddr,
}

struct WalkedTables<F> {
    tables: Option<Tables<F>>,
    /// Tables that were left empty, and the change by which: a CPU may still walk them.
    retired: Vec<(u64, PhysAddr)>,
}

/// Frames for tables that CPUs walk: those left empty are kept.
struct Walked<'a> {
    frames: TableFrames,
    retired: &'a mut Vec<(u64, PhysAddr)>,
    change: u64,
}

impl<F: Format> GuestTables<F> {
    /// Tables that show `memory` and nothing else, by pages of at most this size.
    pub fn new(memory: &GuestRam, largest: PageSize) -> Result<Self, OutOfMemory> {
        let mut frames = TableFrames::anywhere();
        let tables = Tables::new(&mut frames, largest).map_err(|_| OutOfMemory)?;
        let root = tables.root();
        let walked = WalkedTables { tables: Some(tables), retired: Vec::new() };
        let this = Self { root, walked: Mutex::new(walked), changes: AtomicU64::new(0) };
        for piece in memory.pieces() {
            let range = PhysRange::from_start(PhysAddr(piece.physical), piece.bytes).ok_or(OutOfMemory)?;
            this.show(piece.gpa, range, Flags::empty()).map_err(|_| OutOfMemory)?;
        }
        Ok(this)
    }

    /// Physical address of the root.
    pub fn root(&self) -> PhysAddr {
        self.root
    }

    /// Shows a range of a device's, uncached, where nothing is.
    pub fn show_device(&self, gpa: u64, range: PhysRange) -> Result<(), MapError> {
        self.show(gpa, range, Flags::CACHE_DISABLE)
    }

    /// Shows memory of the guest. It may be shown already.
    ///
    /// # Errors
    /// [`MapError`]: there is no memory for tables.
    pub fn show_memory(&self, gpa: u64, range: PhysRange) -> Result<(), MapError> {
        match self.show(gpa, range, Flags::empty()) {
            Err(MapError::AlreadyMapped { .. }) => Ok(()),
            other => other,
        }
    }

    fn show(&self, gpa: u64, range: PhysRange, caching: Flags) -> Result<(), MapError> {
        let flags = Flags::WRITABLE | Flags::USER | caching;
        self.change(|tables, frames| tables.map(frames, gpa, range.start(), range.bytes(), flags))
    }

    /// Hides what was shown.
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
        act: impl FnOnce(&mut Tables<F>, &mut Walked<'_>) -> Result<(), MapError>,
    ) -> Result<(), MapError> {
        let mut this = self.walked.lock();
        let WalkedTables { tables: Some(tables), retired } = &mut *this else { return Ok(()) };
        let change = self.changes() + 1;
        act(tables, &mut Walked { frames: TableFrames::anywhere(), retired, change })
    }

    /// How often something was hidden.
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Since so many changes every vCPU has flushed its TLB: tables of those and earlier ones are given back.
    pub fn reclaim(&self, change: u64) {
        let mut this = self.walked.lock();
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

impl<F: Format> Drop for GuestTables<F> {
    fn drop(&mut self) {
        self.reclaim(u64::MAX);
        if let Some(tables) = self.walked.get_mut().tables.take() {
            tables.free_all(&mut TableFrames::anywhere());
        }
    }
}
