// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's page tables.

use core::arch::asm;

use paging::{Flags, Host, MapError, Tables};
use spin::Mutex;
use units::{PAGE_BYTES, PageSize, PhysAddr, PhysRange};

use super::frames::FRAMES;
use super::protection::{largest_page, protect_this_cpu};
use super::table_frames::TableFrames;
use crate::arch::address::{self, DIRECT_MAP};
use crate::arch::image;

static HOST_TABLES: Mutex<Option<Tables<Host>>> = Mutex::new(None);

/// The reason for which the host's address space could not be built. Fatal.
#[derive(Clone, Copy, Debug)]
#[allow(dead_code, reason = "the refusal's details are for the panic's message")]
pub enum MemoryError {
    /// Less memory than the host itself needs.
    OutOfMemory,
    /// A mapping was refused.
    Map(MapError),
}

impl From<MapError> for MemoryError {
    fn from(error: MapError) -> Self {
        Self::Map(error)
    }
}

/// Device pages to map: virtual address, physical address.
pub type DevicePage = (u64, u64);

/// Builds the host's own page tables and switches to them: the direct map of `memory`, the image with its rights, the
/// device pages, and what `show` adds. W^X holds from here on.
pub fn enter(
    memory: impl Iterator<Item = PhysRange>,
    devices: &[DevicePage],
    show: impl FnOnce(&mut Tables<Host>, &mut TableFrames) -> Result<(), MapError>,
) -> Result<(), MemoryError> {
    let mut frames = TableFrames::below_4_gib();
    let mut tables = Tables::new(&mut frames, largest_page())?;
    let data = Flags::WRITABLE | Flags::NO_EXECUTE | Flags::GLOBAL;
    for range in memory {
        for part in without_image(range) {
            tables.map(&mut frames, DIRECT_MAP + part.start().0, part.start(), part.bytes(), data)?;
        }
    }
    map_image(&mut tables, &mut frames)?;
    for &(at, physical) in devices {
        tables.map(&mut frames, at, PhysAddr(physical), PAGE_BYTES, data | Flags::CACHE_DISABLE)?;
    }
    show(&mut tables, &mut frames)?;
    switch_to(tables.root());
    *HOST_TABLES.lock() = Some(tables);
    Ok(())
}

/// Changes the host's tables; `None` if there are none yet.
pub fn with_host_tables<T>(change: impl FnOnce(&mut Tables<Host>, &mut TableFrames) -> T) -> Option<T> {
    HOST_TABLES.lock().as_mut().map(|tables| change(tables, &mut TableFrames::anywhere()))
}

fn map_image(tables: &mut Tables<Host>, frames: &mut TableFrames) -> Result<(), MapError> {
    let sections = [
        (address::text_start()..address::text_end(), Flags::GLOBAL),
        (address::rodata_start()..address::rodata_end(), Flags::GLOBAL | Flags::NO_EXECUTE),
        (address::data_start()..address::data_end(), Flags::GLOBAL | Flags::NO_EXECUTE | Flags::WRITABLE),
    ];
    for (range, flags) in sections {
        let physical = PhysAddr(image::physical(range.start));
        tables.map(frames, range.start, physical, range.end - range.start, flags)?;
    }
    Ok(())
}

fn without_image(range: PhysRange) -> impl Iterator<Item = PhysRange> {
    let image = image::frames();
    let below = PhysRange::new(range.start(), range.end().min(image.start()));
    let above = PhysRange::new(range.start().max(image.end()), range.end());
    below.into_iter().chain(above).filter(|part| !part.is_empty())
}

fn switch_to(root: PhysAddr) {
    // SAFETY: the new tables show the running code, its data, the boot stack and (through the direct map) all frames at
    // the addresses the old ones did.
    unsafe { asm!("mov cr3, {}", in(reg) root.0, options(nostack, preserves_flags)) };
    protect_this_cpu();
}

/// The physical address of the host's top page table, for CR3; 0 while there is none.
pub fn host_root() -> u64 {
    HOST_TABLES.lock().as_ref().map_or(0, |tables| tables.root().0)
}

/// Maps new frames at a virtual address; they are never given back.
pub fn map_new(at: u64, bytes: u64, flags: Flags) -> Result<(), MemoryError> {
    let range = FRAMES.lock().allocate(bytes, PageSize::Kib4).map_err(|_| MemoryError::OutOfMemory)?.leak();
    let mut tables = HOST_TABLES.lock();
    let tables = tables.as_mut().ok_or(MemoryError::OutOfMemory)?;
    Ok(tables.map(&mut TableFrames::anywhere(), at, range.start(), bytes, flags)?)
}

/// Maps a device's registers, uncached.
pub fn map_device(at: u64, physical: u64, bytes: u64) -> Result<(), MemoryError> {
    let flags = Flags::WRITABLE | Flags::NO_EXECUTE | Flags::GLOBAL | Flags::CACHE_DISABLE;
    let mapped = with_host_tables(|tables, frames| tables.map(frames, at, PhysAddr(physical), bytes, flags));
    Ok(mapped.ok_or(MemoryError::OutOfMemory)??)
}
