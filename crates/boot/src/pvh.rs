// SPDX-License-Identifier: MIT OR Apache-2.0
//! The PVH boot protocol: the start-info structure with its address in EBX at entry.
//!
//! ```text
//! start info  0 magic   4 version   8 flags   12 modules   16 module list   24 command line   32 RSDP
//!             from version 1:      40 memory map          48 its entries   52 reserved
//! module      0 address   8 bytes   16 command line   24 reserved                              32 bytes each
//! map entry   0 address   8 bytes   16 type           20 reserved                              24 bytes each
//! ```

use core::fmt;

use units::{PHYSICAL_LIMIT, PhysAddr, PhysRange};

use crate::info::{BootInfo, MAXIMUM_MODULES, Module, Note, Protocol};
use crate::memory_map::{MapBuilder, MemoryMap, RegionKind, TooManyRegions};
use crate::physical::{PhysicalMemory, Terminated, terminated, u32_at, u64_at};

/// The first four bytes of the start info.
pub const MAGIC: u32 = 0x336e_c578;

const VERSION_0_BYTES: usize = 40;
const VERSION_1_BYTES: usize = 56;
const MODULE_BYTES: usize = 32;
const MAP_ENTRY_BYTES: usize = 24;
/// Far more entries than any machine has, so that a wild count ends soon.
const MAXIMUM_MAP_ENTRIES: u32 = 4096;

/// No host can start from this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PvhError {
    /// The start info cannot be read.
    StartInfoUnreadable(PhysAddr),
    /// The start info begins with another magic number.
    BadMagic {
        /// The number found.
        found: u32,
    },
    /// The loader speaks version 0, or gave an empty map.
    NoMemoryMap {
        /// The version it speaks.
        version: u32,
    },
    /// The memory map cannot be read.
    MemoryMapUnreadable {
        /// Address that the start info gives.
        address: PhysAddr,
        /// Number of entries that the start info gives.
        entries: u32,
    },
    /// See [`TooManyRegions`].
    TooManyRegions,
    /// Not one usable page.
    NoUsableMemory,
}

impl fmt::Display for PvhError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StartInfoUnreadable(address) => write!(f, "PVH start info at {address} cannot be read"),
            Self::BadMagic { found } => {
                write!(f, "PVH start info begins with {found:#x} instead of {MAGIC:#x}: start Baton with a PVH loader")
            }
            Self::NoMemoryMap { version } => {
                write!(f, "PVH start info of version {version} has no memory map: a loader of version 1 is needed")
            }
            Self::MemoryMapUnreadable { address, entries } => {
                write!(f, "PVH memory map at {address} ({entries} entries) cannot be read")
            }
            Self::TooManyRegions => TooManyRegions.fmt(f),
            Self::NoUsableMemory => f.write_str("the memory map has no usable memory"),
        }
    }
}

impl core::error::Error for PvhError {}

impl From<TooManyRegions> for PvhError {
    fn from(_: TooManyRegions) -> Self {
        Self::TooManyRegions
    }
}

/// Reads the start info at `address` and everything it points to.
///
/// # Errors
/// [`PvhError`] where no host can start. Information that a host can do without is left out and noted.
pub fn parse(memory: &impl PhysicalMemory, address: PhysAddr) -> Result<BootInfo, PvhError> {
    let unreadable = PvhError::StartInfoUnreadable(address);
    let start = memory.bytes(address, VERSION_0_BYTES).ok_or(unreadable)?;
    let field = |offset| u32_at(start, offset).ok_or(unreadable);
    let pointer = |offset| u64_at(start, offset).map(PhysAddr).ok_or(unreadable);
    let (found, version, modules) = (field(0)?, field(4)?, field(12)?);
    let (module_list, command_line, rsdp) = (pointer(16)?, pointer(24)?, pointer(32)?);
    if found != MAGIC {
        return Err(PvhError::BadMagic { found });
    }
    if version == 0 {
        return Err(PvhError::NoMemoryMap { version });
    }
    let (memory_map, absurd) = parse_map(memory, memory.bytes(address, VERSION_1_BYTES).ok_or(unreadable)?)?;
    let mut info = BootInfo::new(Protocol::Pvh, memory_map);
    if absurd > 0 {
        info.note(Note::AbsurdRegions(absurd));
    }
    info.rsdp = Some(rsdp).filter(|rsdp| *rsdp != PhysAddr(0));
    info.command_line = read_command_line(memory, command_line, None, &mut info);
    parse_modules(memory, module_list, modules, &mut info);
    Ok(info)
}

/// Returns the map, and how many of its entries were invalid.
fn parse_map(memory: &impl PhysicalMemory, start: &[u8]) -> Result<(MemoryMap, usize), PvhError> {
    let version = u32_at(start, 4).unwrap_or_default();
    let address = PhysAddr(u64_at(start, 40).unwrap_or_default());
    let entries = u32_at(start, 48).unwrap_or_default();
    if address == PhysAddr(0) || entries == 0 {
        return Err(PvhError::NoMemoryMap { version });
    }
    if entries > MAXIMUM_MAP_ENTRIES {
        return Err(PvhError::TooManyRegions);
    }
    let unreadable = PvhError::MemoryMapUnreadable { address, entries };
    let bytes = memory.bytes(address, entries as usize * MAP_ENTRY_BYTES).ok_or(unreadable)?;
    let mut builder = MapBuilder::default();
    for entry in bytes.chunks_exact(MAP_ENTRY_BYTES) {
        let (start, bytes, kind) = map_entry(entry).ok_or(unreadable)?;
        builder.add(start, bytes, kind)?;
    }
    let absurd = builder.absurd_entries();
    let map = builder.finish()?;
    if map.usable_bytes() == 0 { Err(PvhError::NoUsableMemory) } else { Ok((map, absurd)) }
}

fn map_entry(entry: &[u8]) -> Option<(PhysAddr, u64, RegionKind)> {
    let kind = RegionKind::from_acpi_type(u32_at(entry, 16)?);
    Some((PhysAddr(u64_at(entry, 0)?), u64_at(entry, 8)?, kind))
}

fn parse_modules(memory: &impl PhysicalMemory, list: PhysAddr, count: u32, info: &mut BootInfo) {
    if count as usize > MAXIMUM_MODULES {
        info.note(Note::TooManyModules { count });
    }
    for index in 0..count.min(MAXIMUM_MODULES as u32) {
        match module_entry(memory, list, index) {
            None => info.note(Note::UnreadableModule { index }),
            Some((None, _)) => info.note(Note::AbsurdModule { index }),
            Some((Some(range), command_line)) => {
                let command_line = read_command_line(memory, command_line, Some(index), info);
                info.modules.push(Module { range, command_line });
            }
        }
    }
}

/// Returns a module's range (`None` if it is invalid) and where its command line lies; `None` if the list cannot be
/// read.
fn module_entry(memory: &impl PhysicalMemory, list: PhysAddr, index: u32) -> Option<(Option<PhysRange>, PhysAddr)> {
    let entry = memory.bytes(list.checked_add(u64::from(index) * MODULE_BYTES as u64)?, MODULE_BYTES)?;
    let range = PhysRange::from_start(PhysAddr(u64_at(entry, 0)?), u64_at(entry, 8)?);
    let range = range.filter(|range| !range.is_empty() && range.end().0 <= PHYSICAL_LIMIT);
    Some((range, PhysAddr(u64_at(entry, 16)?)))
}

fn read_command_line<const BYTES: usize>(
    memory: &impl PhysicalMemory,
    address: PhysAddr,
    module: Option<u32>,
    info: &mut BootInfo,
) -> arrayvec::ArrayString<BYTES> {
    match terminated(memory, address) {
        None => {
            info.note(Note::CommandLineUnreadable { module });
            arrayvec::ArrayString::new()
        }
        Some(Terminated { text, cut }) => {
            if cut {
                info.note(Note::CommandLineCut { module });
            }
            text
        }
    }
}
