// SPDX-License-Identifier: MIT OR Apache-2.0
//! The Linux boot protocol, as kexec, GRUB's `linux`, iPXE and QEMU speak it: `boot_params`, with its address in ESI at
//! the 32-bit entry and in RSI at the 64-bit one. (The Linux kernel's documentation, "The Linux/x86 Boot Protocol",
//! "Zero Page".)
//!
//! ```text
//! boot_params  0x070 RSDP   0x0c0 bundle, its bytes, command line: upper halves   0x1c0 EFI   0x1e8 map entries
//!              0x202 "HdrS" 0x218 bundle, its bytes   0x228 command line   0x250 setup data   0x2d0 memory map
//! map entry    0 address    8 bytes   16 type                                             20 bytes each, at most 128
//! setup data   0 the next   8 type   12 bytes   16 content: more of the map, what of EFI has moved, …
//! ```

use core::fmt;

use units::{PHYSICAL_LIMIT, PhysAddr, PhysRange};

use crate::info::{BootInfo, Module, Note, Protocol};
use crate::memory_map::{MapBuilder, RegionKind, TooManyRegions};
use crate::physical::{PhysicalMemory, Terminated, terminated, u32_at, u64_at, wide};

mod efi;

/// Magic number at the start of the setup header: "HdrS".
pub const MAGIC: u32 = 0x5372_6448;

const BOOT_PARAMS_BYTES: usize = 4096;
const MAP_ENTRY_BYTES: usize = 20;
const MAXIMUM_MAP_ENTRIES: usize = 128;
/// Far more than any loader leaves, so that a circular chain ends.
const MAXIMUM_SETUP_DATA: usize = 64;
const SETUP_DATA_BYTES: usize = 16;

mod field {
    pub const RSDP: usize = 0x070;
    pub const EXT_RAMDISK_IMAGE: usize = 0x0c0;
    pub const EXT_RAMDISK_SIZE: usize = 0x0c4;
    pub const EXT_COMMAND_LINE: usize = 0x0c8;
    pub const MAP_ENTRIES: usize = 0x1e8;
    pub const HEADER: usize = 0x202;
    pub const RAMDISK_IMAGE: usize = 0x218;
    pub const RAMDISK_SIZE: usize = 0x21c;
    pub const COMMAND_LINE: usize = 0x228;
    pub const SETUP_DATA: usize = 0x250;
    pub const MAP: usize = 0x2d0;
}

mod setup_data {
    pub const MORE_MAP: u32 = 1;
    pub const EFI: u32 = 4;
}

/// No host can start from this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinuxError {
    /// `boot_params` cannot be read.
    Unreadable(PhysAddr),
    /// There is no setup header in it.
    NoHeader {
        /// The value found instead.
        found: u32,
    },
    /// It has no memory map.
    NoMemoryMap,
    /// See [`TooManyRegions`].
    TooManyRegions,
    /// Not one usable page.
    NoUsableMemory,
}

impl fmt::Display for LinuxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(address) => write!(f, "Linux boot_params at {address} cannot be read"),
            Self::NoHeader { found } => write!(
                f,
                "Linux boot_params have {found:#x} where \"HdrS\" should be: the loader has to copy the setup header \
                 there"
            ),
            Self::NoMemoryMap => f.write_str(
                "Linux boot_params have no memory map: the firmware has no INT 15h E820h, or the loader left it out",
            ),
            Self::TooManyRegions => TooManyRegions.fmt(f),
            Self::NoUsableMemory => f.write_str("the memory map has no usable memory"),
        }
    }
}

impl core::error::Error for LinuxError {}

impl From<TooManyRegions> for LinuxError {
    fn from(_: TooManyRegions) -> Self {
        Self::TooManyRegions
    }
}

/// Reads `boot_params` at `address` and everything it points to.
///
/// # Errors
/// [`LinuxError`] where no host can start. Information that a host can do without is left out and noted.
pub fn parse(memory: &impl PhysicalMemory, address: PhysAddr) -> Result<BootInfo, LinuxError> {
    let params = memory.bytes(address, BOOT_PARAMS_BYTES).ok_or(LinuxError::Unreadable(address))?;
    let found = u32_at(params, field::HEADER).unwrap_or_default();
    if found != MAGIC {
        return Err(LinuxError::NoHeader { found });
    }
    let mut builder = MapBuilder::default();
    let entries = usize::from(params[field::MAP_ENTRIES]);
    if entries > MAXIMUM_MAP_ENTRIES {
        return Err(LinuxError::TooManyRegions);
    }
    add_entries(&mut builder, &params[field::MAP..][..entries * MAP_ENTRY_BYTES])?;
    let extra = follow_setup_data(memory, params, &mut builder)?;
    let absurd = builder.absurd_entries();
    let map = builder.finish()?;
    match map.usable_bytes() {
        _ if map.regions().is_empty() => return Err(LinuxError::NoMemoryMap),
        0 => return Err(LinuxError::NoUsableMemory),
        _ => {}
    }
    let mut info = BootInfo::new(Protocol::Linux, map);
    if absurd > 0 {
        info.note(Note::AbsurdRegions(absurd));
    }
    // Setup data holds more of the map only where `boot_params` are full of it.
    let missed = extra.unreadable.filter(|_| entries == MAXIMUM_MAP_ENTRIES);
    missed.into_iter().for_each(|at| info.note(Note::UnreadableSetupData { at }));
    let reported = u64_at(params, field::RSDP).filter(|rsdp| *rsdp != 0).map(PhysAddr);
    info.rsdp = reported.or_else(|| efi::rsdp(memory, params, extra.efi_tables));
    read_command_line(memory, params, &mut info);
    take_bundle(params, &mut info);
    Ok(info)
}

fn add_entries(builder: &mut MapBuilder, entries: &[u8]) -> Result<(), TooManyRegions> {
    for entry in entries.chunks_exact(MAP_ENTRY_BYTES) {
        let (start, bytes) = (u64_at(entry, 0).unwrap_or_default(), u64_at(entry, 8).unwrap_or_default());
        builder.add(PhysAddr(start), bytes, RegionKind::from_acpi_type(u32_at(entry, 16).unwrap_or_default()))?;
    }
    Ok(())
}

/// The content of setup data beside more of the memory map.
#[derive(Default)]
struct Extra {
    /// Address of EFI's configuration tables, if the loader gives it.
    efi_tables: Option<PhysAddr>,
    /// Address at which the chain could not be followed.
    unreadable: Option<PhysAddr>,
}

fn follow_setup_data(
    memory: &impl PhysicalMemory,
    params: &[u8],
    builder: &mut MapBuilder,
) -> Result<Extra, TooManyRegions> {
    let mut extra = Extra::default();
    let mut next = u64_at(params, field::SETUP_DATA).unwrap_or_default();
    for _ in 0..MAXIMUM_SETUP_DATA {
        if next == 0 {
            break;
        }
        let at = PhysAddr(next);
        let Some((following, kind, content)) = read_setup_data(memory, at) else {
            extra.unreadable = Some(at);
            break;
        };
        match kind {
            setup_data::MORE_MAP => add_entries(builder, content)?,
            setup_data::EFI => extra.efi_tables = u64_at(content, 16).map(PhysAddr),
            _ => {}
        }
        next = following;
    }
    Ok(extra)
}

/// Returns the next entry's address, the type, and the content; none for unknown types.
fn read_setup_data(memory: &impl PhysicalMemory, at: PhysAddr) -> Option<(u64, u32, &[u8])> {
    let head = memory.bytes(at, SETUP_DATA_BYTES)?;
    let (next, kind, bytes) = (u64_at(head, 0)?, u32_at(head, 8)?, u32_at(head, 12)?);
    let is_known = [setup_data::MORE_MAP, setup_data::EFI].contains(&kind);
    let content = || memory.bytes(at.checked_add(SETUP_DATA_BYTES as u64)?, bytes as usize);
    Some((next, kind, if is_known { content()? } else { &[] }))
}

fn read_command_line(memory: &impl PhysicalMemory, params: &[u8], info: &mut BootInfo) {
    let address = PhysAddr(wide(params, field::COMMAND_LINE, field::EXT_COMMAND_LINE));
    match terminated(memory, address) {
        None => info.note(Note::CommandLineUnreadable { module: None }),
        Some(Terminated { text, cut }) => {
            info.command_line = text;
            if cut {
                info.note(Note::CommandLineCut { module: None });
            }
        }
    }
}

/// The initial RAM disk, as Linux would call it.
fn take_bundle(params: &[u8], info: &mut BootInfo) {
    let start = wide(params, field::RAMDISK_IMAGE, field::EXT_RAMDISK_IMAGE);
    let bytes = wide(params, field::RAMDISK_SIZE, field::EXT_RAMDISK_SIZE);
    if start == 0 || bytes == 0 {
        return;
    }
    match PhysRange::from_start(PhysAddr(start), bytes).filter(|range| range.end().0 <= PHYSICAL_LIMIT) {
        None => info.note(Note::AbsurdModule { index: 0 }),
        Some(range) => info.modules.push(Module { range, command_line: arrayvec::ArrayString::new() }),
    }
}
