// SPDX-License-Identifier: MIT OR Apache-2.0
//! Linux bzImage, started at its 64-bit entry (Linux boot protocol 2.12 and later).
//!
//! The image is a real-mode part, which is not run here, whose setup header describes the rest: the protected-mode
//! part, which starts with the decompressor. A relocatable kernel moves itself up to its preferred address where it was
//! loaded lower, so it is loaded there straight away; `init_size` bytes from there are its own until it runs.

use alloc::vec;
use alloc::vec::Vec;

use super::place::{self, CommandLines, ModuleRoom};
use super::{LoadError, Module, check_command_line, entry, memory_map};
use crate::addr::Gpa;
use crate::memory::GuestMemory;
use crate::platform::layout::{self, boot};
use crate::vcpu::EntryState;

/// Offsets into image and zero page alike (boot protocol, "The real-mode kernel header"; zero page: "zero-page.rst").
mod offset {
    pub const ACPI_RSDP_ADDRESS: usize = 0x70;
    pub const E820_ENTRIES: usize = 0x1e8;
    pub const SETUP_HEADER: usize = 0x1f1;
    pub const SETUP_SECTORS: usize = 0x1f1;
    pub const SYSTEM_SIZE: usize = 0x1f4;
    pub const VIDEO_MODE: usize = 0x1fa;
    pub const BOOT_FLAG: usize = 0x1fe;
    pub const JUMP_LENGTH: usize = 0x201;
    pub const MAGIC: usize = 0x202;
    pub const VERSION: usize = 0x206;
    pub const LOADER_TYPE: usize = 0x210;
    pub const LOAD_FLAGS: usize = 0x211;
    pub const RAMDISK_ADDRESS: usize = 0x218;
    pub const RAMDISK_BYTES: usize = 0x21c;
    pub const COMMAND_LINE: usize = 0x228;
    pub const RAMDISK_ADDRESS_MAX: usize = 0x22c;
    pub const KERNEL_ALIGNMENT: usize = 0x230;
    pub const RELOCATABLE: usize = 0x234;
    pub const XLOAD_FLAGS: usize = 0x236;
    pub const COMMAND_LINE_SIZE: usize = 0x238;
    pub const PREFERRED_ADDRESS: usize = 0x258;
    pub const INIT_SIZE: usize = 0x260;
    /// The header of protocol 2.12 ends here.
    pub const HEADER_2_12_END: usize = 0x268;
    /// The zero page has other things from here on.
    pub const HEADER_END_MAX: usize = 0x290;
    pub const E820_TABLE: usize = 0x2d0;
}

const BOOT_FLAG: u16 = 0xaa55;
const MAGIC: &[u8; 4] = b"HdrS";
const OLDEST_VERSION: u16 = 0x020c;
/// From this version on the zero page names the RSDP; older kernels search for it below 1 MiB, where it is.
const RSDP_VERSION: u16 = 0x020e;
const LOADED_HIGH: u8 = 1 << 0;
const XLF_KERNEL_64: u16 = 1 << 0;
const ENTRY_64: u64 = 0x200;
const SECTOR_BYTES: usize = 512;
const LOADER_UNDEFINED: u8 = 0xff;
const VIDEO_NORMAL: u16 = 0xffff;
const E820_ENTRY_BYTES: usize = 20;
const ZERO_PAGE_BYTES: usize = 0x1000;
/// Archives that follow each other in an initial RAM disk start at multiples of this.
const ARCHIVE_ALIGNMENT: usize = 4;

/// Returns whether the magic numbers of a bzImage are there.
pub(super) fn is_linux(image: &[u8]) -> bool {
    field(image, offset::BOOT_FLAG) == BOOT_FLAG.to_le_bytes() && field(image, offset::MAGIC) == *MAGIC
}

/// Loads a bzImage and its initial RAM disk (the modules, one after the other).
pub(super) fn load(
    memory: &impl GuestMemory,
    image: &[u8],
    command_line: &[u8],
    modules: &[Module<'_>],
) -> Result<EntryState, LoadError> {
    let header = Header::parse(image)?;
    check_command_line(command_line, header.command_line_bytes)?;
    let kernel = header.payload(image)?;
    let start = header.load_address()?;
    let end = place::check_kernel(memory, start, u64::from(header.init_bytes).max(kernel.len() as u64))?;
    let ramdisk = place_ramdisk(memory, modules, end, u64::from(header.ramdisk_address_max) + 1)?;

    memory.write(Gpa(start), kernel)?;
    let command_line = CommandLines::new(boot::COMMAND_LINE).add(memory, command_line)?;
    let page = zero_page(image, &header, memory.size_bytes(), ramdisk, command_line);
    memory.write(boot::INFO, &page)?;
    Ok(entry::long_mode(memory, start + ENTRY_64, boot::INFO.0)?)
}

/// The setup header's fields that a loader needs.
struct Header {
    version: u16,
    setup_bytes: usize,
    payload_bytes: usize,
    ramdisk_address_max: u32,
    alignment: u32,
    is_relocatable: bool,
    command_line_bytes: usize,
    preferred_address: u64,
    init_bytes: u32,
}

impl Header {
    fn parse(image: &[u8]) -> Result<Self, LoadError> {
        check_present(image, "setup header", offset::HEADER_2_12_END)?;
        let version = u16_at(image, offset::VERSION);
        if version < OLDEST_VERSION {
            return Err(LoadError::OldBootProtocol { version });
        }
        if u16_at(image, offset::XLOAD_FLAGS) & XLF_KERNEL_64 == 0 || image[offset::LOAD_FLAGS] & LOADED_HIGH == 0 {
            return Err(LoadError::No64BitEntry);
        }
        let sectors = match image[offset::SETUP_SECTORS] {
            0 => 4,
            sectors => usize::from(sectors),
        };
        Ok(Self {
            version,
            setup_bytes: (sectors + 1) * SECTOR_BYTES,
            payload_bytes: u32_at(image, offset::SYSTEM_SIZE) as usize * 16,
            ramdisk_address_max: u32_at(image, offset::RAMDISK_ADDRESS_MAX),
            alignment: u32_at(image, offset::KERNEL_ALIGNMENT),
            is_relocatable: image[offset::RELOCATABLE] != 0,
            command_line_bytes: u32_at(image, offset::COMMAND_LINE_SIZE) as usize,
            preferred_address: u64_at(image, offset::PREFERRED_ADDRESS),
            init_bytes: u32_at(image, offset::INIT_SIZE),
        })
    }

    /// The protected-mode part. `syssize` counts paragraphs, so the last one may be partly missing.
    fn payload<'a>(&self, image: &'a [u8]) -> Result<&'a [u8], LoadError> {
        if self.payload_bytes <= ENTRY_64 as usize {
            return Err(LoadError::BadLinuxHeader { reason: "syssize ends before the 64-bit entry" });
        }
        let end = self.setup_bytes.saturating_add(self.payload_bytes);
        check_present(image, "kernel", end - 15)?;
        Ok(&image[self.setup_bytes..end.min(image.len())])
    }

    /// The preferred address, raised to the kernel's alignment where it may move.
    fn load_address(&self) -> Result<u64, LoadError> {
        if !self.is_relocatable {
            // Boot structures of a 64-bit entry stay in their usual places: below 1 MiB it would lie on them.
            let is_low = self.preferred_address < layout::KERNEL.0;
            let refused = LoadError::BadLinuxHeader { reason: "pref_address is below 1 MiB" };
            return if is_low { Err(refused) } else { Ok(self.preferred_address) };
        }
        if !self.alignment.is_power_of_two() {
            return Err(LoadError::BadLinuxHeader { reason: "kernel_alignment is no power of two" });
        }
        self.preferred_address
            .max(layout::KERNEL.0)
            .checked_next_multiple_of(self.alignment.into())
            .ok_or(LoadError::BadLinuxHeader { reason: "pref_address is beyond the address space" })
    }
}

/// Range of the initial RAM disk; no bytes if there is none.
#[derive(Clone, Copy, Default)]
struct RamDisk {
    address: u32,
    bytes: u32,
}

fn place_ramdisk(
    memory: &impl GuestMemory,
    modules: &[Module<'_>],
    floor: u64,
    limit: u64,
) -> Result<RamDisk, LoadError> {
    let padded = |module: &Module<'_>| module.bytes.len().next_multiple_of(ARCHIVE_ALIGNMENT) as u64;
    let bytes: u64 = modules.iter().map(padded).sum();
    if bytes == 0 {
        return Ok(RamDisk::default());
    }
    let start = ModuleRoom::new(memory, "initrd", floor, limit).take(bytes)?;
    let mut at = start.0;
    for module in modules {
        memory.write(Gpa(at), module.bytes)?;
        let written = module.bytes.len() as u64;
        place::zero(memory, Gpa(at + written), padded(module) - written)?;
        at += padded(module);
    }
    // Both are below 4 GiB: the room was.
    Ok(RamDisk { address: start.0 as u32, bytes: bytes as u32 })
}

fn zero_page(image: &[u8], header: &Header, memory_bytes: u64, ramdisk: RamDisk, command_line: Gpa) -> Vec<u8> {
    let mut page = vec![0; ZERO_PAGE_BYTES];
    let header_end = (offset::MAGIC + usize::from(image[offset::JUMP_LENGTH]))
        .clamp(offset::HEADER_2_12_END, offset::HEADER_END_MAX)
        .min(image.len());
    page[offset::SETUP_HEADER..header_end].copy_from_slice(&image[offset::SETUP_HEADER..header_end]);
    page[offset::LOADER_TYPE] = LOADER_UNDEFINED;
    put(&mut page, offset::VIDEO_MODE, &VIDEO_NORMAL.to_le_bytes());
    put(&mut page, offset::RAMDISK_ADDRESS, &ramdisk.address.to_le_bytes());
    put(&mut page, offset::RAMDISK_BYTES, &ramdisk.bytes.to_le_bytes());
    put(&mut page, offset::COMMAND_LINE, &(command_line.0 as u32).to_le_bytes());
    if header.version >= RSDP_VERSION {
        put(&mut page, offset::ACPI_RSDP_ADDRESS, &layout::ACPI_TABLES.0.to_le_bytes());
    }
    put_memory_map(&mut page, memory_bytes);
    page
}

fn put_memory_map(page: &mut [u8], memory_bytes: u64) {
    let map = memory_map(memory_bytes);
    page[offset::E820_ENTRIES] = map.len() as u8;
    for (index, entry) in map.iter().enumerate() {
        let at = offset::E820_TABLE + index * E820_ENTRY_BYTES;
        put(page, at, &entry.start.0.to_le_bytes());
        put(page, at + 8, &entry.bytes.to_le_bytes());
        put(page, at + 16, &(entry.kind as u32).to_le_bytes());
    }
}

fn put(page: &mut [u8], at: usize, bytes: &[u8]) {
    page[at..at + bytes.len()].copy_from_slice(bytes);
}

fn check_present(image: &[u8], part: &'static str, needed: usize) -> Result<(), LoadError> {
    match image.len() < needed {
        true => Err(LoadError::Truncated { part, needed_bytes: needed as u64, present_bytes: image.len() as u64 }),
        false => Ok(()),
    }
}

/// A field's bytes; zeroes where the image does not reach.
fn field<const N: usize>(image: &[u8], at: usize) -> [u8; N] {
    image.get(at..at + N).and_then(|bytes| bytes.try_into().ok()).unwrap_or([0; N])
}

fn u16_at(image: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(field(image, at))
}

fn u32_at(image: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(field(image, at))
}

fn u64_at(image: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(field(image, at))
}
