// SPDX-License-Identifier: MIT OR Apache-2.0
//! Multiboot2, as GRUB speaks it on BIOS and UEFI: the information with its address in EBX at entry. (Multiboot2
//! Specification 2.0, section 3.6.)
//!
//! ```text
//! information  0 bytes in all   4 reserved   8 tags, each at a multiple of 8
//! tag          0 type           4 bytes      8 content
//!   1 command line: text        3 module: start, end, text       14, 15 a copy of the ACPI root pointer, old and new
//!   6 memory map: bytes of an entry, version, entries (0 address, 8 bytes, 16 type)
//!  17 EFI memory map: bytes of an entry, version, entries (0 type, 8 address, 24 pages of 4 KiB)
//!  18 EFI's boot services still run                               0 the end
//! ```

use core::fmt;

use units::{PAGE_BYTES, PHYSICAL_LIMIT, PhysAddr, PhysRange};

use crate::info::{BootInfo, MAXIMUM_MODULES, Module, Note, Protocol};
use crate::memory_map::{MapBuilder, MemoryMap, RegionKind, TooManyRegions};
use crate::physical::{PhysicalMemory, Terminated, text_within, u32_at, u64_at};

/// A loader's magic number in EAX at entry.
pub const MAGIC: u32 = 0x36d7_6289;

const HEADER_BYTES: usize = 8;
const TAG_BYTES: usize = 8;
/// More than a loader has to report, so that a wild size is noticed.
const MAXIMUM_BYTES: u32 = 1 << 20;

mod kind {
    pub const END: u32 = 0;
    pub const COMMAND_LINE: u32 = 1;
    pub const MODULE: u32 = 3;
    pub const MEMORY_MAP: u32 = 6;
    pub const ACPI_OLD: u32 = 14;
    pub const ACPI_NEW: u32 = 15;
    pub const EFI_MEMORY_MAP: u32 = 17;
    pub const EFI_BOOT_SERVICES: u32 = 18;
}

/// No host can start from this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Multiboot2Error {
    /// The information cannot be read.
    Unreadable(PhysAddr),
    /// The information has an impossible size.
    BadSize {
        /// Size in bytes that it gives.
        bytes: u32,
    },
    /// A tag is shorter than its own header, or goes beyond the information.
    BadTag {
        /// Its type.
        kind: u32,
        /// Offset in the information, in bytes.
        offset: usize,
    },
    /// EFI's boot services still run.
    BootServices,
    /// There is no memory map.
    NoMemoryMap,
    /// See [`TooManyRegions`].
    TooManyRegions,
    /// Not one usable page.
    NoUsableMemory,
}

impl fmt::Display for Multiboot2Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(address) => write!(f, "Multiboot2 information at {address} cannot be read"),
            Self::BadSize { bytes } => {
                write!(f, "Multiboot2 information has {bytes} bytes: start Baton with GRUB's multiboot2")
            }
            Self::BadTag { kind, offset } => {
                write!(f, "Multiboot2 information: the tag of type {kind} at byte {offset} is damaged")
            }
            Self::BootServices => f.write_str("EFI's boot services still run: the loader has to end them"),
            Self::NoMemoryMap => {
                f.write_str("Multiboot2 information has no memory map: a loader is needed that gives one, as GRUB does")
            }
            Self::TooManyRegions => TooManyRegions.fmt(f),
            Self::NoUsableMemory => f.write_str("the memory map has no usable memory"),
        }
    }
}

impl core::error::Error for Multiboot2Error {}

impl From<TooManyRegions> for Multiboot2Error {
    fn from(_: TooManyRegions) -> Self {
        Self::TooManyRegions
    }
}

/// A tag: its type, where in the information its content begins, and the content.
#[derive(Clone, Copy)]
struct Tag<'a> {
    kind: u32,
    offset: usize,
    content: &'a [u8],
}

/// Reads the information at `address`.
///
/// # Errors
/// [`Multiboot2Error`] where no host can start. Information that a host can do without is left out and noted.
pub fn parse(memory: &impl PhysicalMemory, address: PhysAddr) -> Result<BootInfo, Multiboot2Error> {
    let unreadable = Multiboot2Error::Unreadable(address);
    let bytes = u32_at(memory.bytes(address, HEADER_BYTES).ok_or(unreadable)?, 0).ok_or(unreadable)?;
    if !(HEADER_BYTES as u32..=MAXIMUM_BYTES).contains(&bytes) {
        return Err(Multiboot2Error::BadSize { bytes });
    }
    let information = memory.bytes(address, bytes as usize).ok_or(unreadable)?;
    if find(information, kind::EFI_BOOT_SERVICES)?.is_some() {
        return Err(Multiboot2Error::BootServices);
    }
    let (memory_map, absurd) = memory_map(information)?;
    let mut info = BootInfo::new(Protocol::Multiboot2, memory_map);
    if absurd > 0 {
        info.note(Note::AbsurdRegions(absurd));
    }
    // The copies lie in the information itself.
    let pointer = find(information, kind::ACPI_NEW)?.or(find(information, kind::ACPI_OLD)?);
    info.rsdp = pointer.and_then(|tag| address.checked_add(tag.offset as u64));
    if let Some(tag) = find(information, kind::COMMAND_LINE)? {
        info.command_line = text(tag.content, None, &mut info);
    }
    modules(information, &mut info)?;
    Ok(info)
}

/// The tag behind the one that ends at `offset`; `None` at the end.
fn tag_at(information: &[u8], offset: usize) -> Result<Option<Tag<'_>>, Multiboot2Error> {
    let rest = information.get(offset..).unwrap_or_default();
    let (Some(kind), Some(bytes)) = (u32_at(rest, 0), u32_at(rest, 4)) else { return Ok(None) };
    if kind == kind::END {
        return Ok(None);
    }
    let content = rest.get(TAG_BYTES..bytes as usize).ok_or(Multiboot2Error::BadTag { kind, offset })?;
    Ok(Some(Tag { kind, offset: offset + TAG_BYTES, content }))
}

/// Calls `visit` for every tag.
fn each<'a>(information: &'a [u8], mut visit: impl FnMut(Tag<'a>)) -> Result<(), Multiboot2Error> {
    let mut at = HEADER_BYTES;
    while let Some(tag) = tag_at(information, at)? {
        visit(tag);
        at = (tag.offset + tag.content.len()).next_multiple_of(8);
    }
    Ok(())
}

/// The first tag of a type.
fn find(information: &[u8], kind: u32) -> Result<Option<Tag<'_>>, Multiboot2Error> {
    let mut found = None;
    each(information, |tag| found = found.or((tag.kind == kind).then_some(tag)))?;
    Ok(found)
}

/// The map, EFI's where there is no other, and how many of its entries were invalid.
fn memory_map(information: &[u8]) -> Result<(MemoryMap, usize), Multiboot2Error> {
    let tag = find(information, kind::MEMORY_MAP)?.or(find(information, kind::EFI_MEMORY_MAP)?);
    let tag = tag.ok_or(Multiboot2Error::NoMemoryMap)?;
    let read = if tag.kind == kind::MEMORY_MAP { entry } else { efi_entry };
    let bad = Multiboot2Error::BadTag { kind: tag.kind, offset: tag.offset - TAG_BYTES };
    let entry_bytes = u32_at(tag.content, 0).filter(|bytes| *bytes > 0).ok_or(bad)? as usize;
    let mut builder = MapBuilder::default();
    for bytes in tag.content.get(8..).ok_or(bad)?.chunks_exact(entry_bytes) {
        let (start, bytes, kind) = read(bytes).ok_or(bad)?;
        builder.add(start, bytes, kind)?;
    }
    let absurd = builder.absurd_entries();
    let map = builder.finish()?;
    match map.usable_bytes() {
        _ if map.regions().is_empty() => Err(Multiboot2Error::NoMemoryMap),
        0 => Err(Multiboot2Error::NoUsableMemory),
        _ => Ok((map, absurd)),
    }
}

fn entry(bytes: &[u8]) -> Option<(PhysAddr, u64, RegionKind)> {
    Some((PhysAddr(u64_at(bytes, 0)?), u64_at(bytes, 8)?, RegionKind::from_acpi_type(u32_at(bytes, 16)?)))
}

fn efi_entry(bytes: &[u8]) -> Option<(PhysAddr, u64, RegionKind)> {
    let kind = RegionKind::from_efi_type(u32_at(bytes, 0)?);
    Some((PhysAddr(u64_at(bytes, 8)?), u64_at(bytes, 24)?.saturating_mul(PAGE_BYTES), kind))
}

fn modules(information: &[u8], info: &mut BootInfo) -> Result<(), Multiboot2Error> {
    let mut index = 0;
    each(information, |tag| {
        if tag.kind == kind::MODULE {
            module(tag.content, index, info);
            index += 1;
        }
    })?;
    if index as usize > MAXIMUM_MODULES {
        info.note(Note::TooManyModules { count: index });
    }
    Ok(())
}

fn module(content: &[u8], index: u32, info: &mut BootInfo) {
    let address = |offset| u32_at(content, offset).map(|address| PhysAddr(address.into()));
    let range = address(0).zip(address(4)).and_then(|(start, end)| PhysRange::new(start, end));
    match range.filter(|range| !range.is_empty() && range.end().0 <= PHYSICAL_LIMIT) {
        _ if info.modules.is_full() => {}
        None => info.note(Note::AbsurdModule { index }),
        Some(range) => {
            let command_line = text(content.get(8..).unwrap_or_default(), Some(index), info);
            info.modules.push(Module { range, command_line });
        }
    }
}

fn text<const BYTES: usize>(content: &[u8], module: Option<u32>, info: &mut BootInfo) -> arrayvec::ArrayString<BYTES> {
    let Terminated { text, cut } = text_within(content);
    if cut {
        info.note(Note::CommandLineCut { module });
    }
    text
}
