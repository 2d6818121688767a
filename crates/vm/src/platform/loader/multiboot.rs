// SPDX-License-Identifier: MIT OR Apache-2.0
//! Multiboot 1 kernels (Multiboot specification 0.6.96): ELF, or any file whose header holds the addresses.

use alloc::vec::Vec;

use super::elf::{self, Segment, Segments};
use super::place::{self, CommandLines, PlacedModules};
use super::structures::Structures;
use super::{LoadError, Module, entry, memory_map};
use crate::addr::Gpa;
use crate::memory::GuestMemory;
use crate::platform::layout;
use crate::vcpu::EntryState;

const HEADER_MAGIC: u32 = 0x1bad_b002;
/// The magic number in EAX at the kernel's entry.
const LOADER_MAGIC: u32 = 0x2bad_b002;
/// The header lies within so many bytes, at a multiple of four.
const SEARCH_BYTES: usize = 8192;
/// Header flags: page-aligned modules and memory information, both always given.
const FLAGS_GIVEN: u32 = 0b11;
/// Header flags that a loader must obey or refuse (section 3.1.2).
const FLAGS_REQUIRED: u32 = 0xffff;
/// Header flag: the address fields are valid and take precedence.
const FLAG_ADDRESSES: u32 = 1 << 16;

/// Information flags (section 3.3): memory sizes, command line, modules, memory map, loader name.
const INFO_FLAGS: u32 = 1 << 0 | 1 << 2 | 1 << 3 | 1 << 6 | 1 << 9;
const LOADER_NAME: &[u8] = b"Baton";

/// A Multiboot header whose checksum is right.
pub(super) struct Header {
    /// Offset in the file, in bytes.
    file_offset: usize,
    flags: u32,
    /// header_addr, load_addr, load_end_addr, bss_end_addr, entry_addr; zero where the file ends.
    addresses: [u32; 5],
}

/// The header, if the image has one.
pub(super) fn find_header(image: &[u8]) -> Option<Header> {
    let searched = &image[..image.len().min(SEARCH_BYTES)];
    (0..searched.len() / 4).map(|index| index * 4).find_map(|offset| {
        let [magic, flags, checksum] = words(searched, offset)?;
        let is_header = magic == HEADER_MAGIC && magic.wrapping_add(flags).wrapping_add(checksum) == 0;
        is_header.then(|| Header {
            file_offset: offset,
            flags,
            addresses: words(image, offset + 12).unwrap_or_default(),
        })
    })
}

/// `N` little-endian words at an offset, if they are all there.
fn words<const N: usize>(bytes: &[u8], offset: usize) -> Option<[u32; N]> {
    let bytes = bytes.get(offset..offset + 4 * N)?;
    let mut words = [0; N];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(4)) {
        *word = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    }
    Some(words)
}

/// Loads a Multiboot kernel.
pub(super) fn load(
    memory: &impl GuestMemory,
    image: &[u8],
    command_line: &[u8],
    modules: &[Module<'_>],
) -> Result<EntryState, LoadError> {
    let header = find_header(image).ok_or(LoadError::NotAKernel)?;
    let refused = header.flags & FLAGS_REQUIRED & !FLAGS_GIVEN;
    if refused != 0 {
        return Err(LoadError::MultibootFeatures { flags: refused });
    }
    let (segments, entry) = match header.flags & FLAG_ADDRESSES {
        0 => elf_segments(image)?,
        _ => flat_segment(image, &header)?,
    };
    elf::check_entry(&segments, entry)?;
    let kernel_end = elf::check_segments(memory, &segments)?;
    let structures = Structures::around(memory, &segments, kernel_end)?;
    elf::load_segments(memory, image, &segments)?;
    let mut lines = CommandLines::new(structures.command_lines);
    let command_line = lines.add(memory, command_line)?;
    let loader_name = lines.add(memory, LOADER_NAME)?;
    let modules = place::place_modules(memory, modules, structures.floor, &mut lines)?;
    write_information(memory, &structures, [command_line, loader_name], &modules)?;
    Ok(entry::protected_mode(memory, entry, LOADER_MAGIC, &structures)?)
}

/// Returns where the program headers want the kernel, and its physical entry point.
fn elf_segments(image: &[u8]) -> Result<(Segments, u32), LoadError> {
    let elf = elf::parse(image)?;
    let outside = LoadError::EntryOutside { address: elf.entry };
    let entry = u32::try_from(physical_entry(&elf)).map_err(|_| outside)?;
    Ok((elf.segments, entry))
}

/// Returns the physical address of the entry point, which the file gives as a linear address.
fn physical_entry(elf: &elf::Elf) -> u64 {
    let inside = |segment: &Segment| {
        let offset = elf.entry.checked_sub(segment.linear)?;
        (offset < segment.memory_bytes).then(|| segment.physical.saturating_add(offset))
    };
    elf.segments.iter().find_map(inside).unwrap_or(elf.entry)
}

/// Returns where the header's own addresses want the kernel (section 3.1.3), and its entry point.
fn flat_segment(image: &[u8], header: &Header) -> Result<(Segments, u32), LoadError> {
    let [header_address, load, load_end, bss_end, entry] = header.addresses;
    let bad = |reason| LoadError::BadMultiboot { reason };
    let before_header = header_address.checked_sub(load).ok_or(bad("load_addr is above header_addr"))?;
    let file_offset = header
        .file_offset
        .checked_sub(before_header as usize)
        .ok_or(bad("load_addr lies before the start of the file"))?;
    let file_bytes = match load_end {
        0 => image.len() - file_offset,
        end => end.checked_sub(load).ok_or(bad("load_end_addr is below load_addr"))? as usize,
    };
    let needed_bytes = file_offset as u64 + file_bytes as u64;
    if needed_bytes > image.len() as u64 {
        return Err(LoadError::Truncated { part: "the kernel", needed_bytes, present_bytes: image.len() as u64 });
    }
    let memory_bytes = u64::from(bss_end.saturating_sub(load)).max(file_bytes as u64);
    let physical = u64::from(load);
    let segment = Segment { file_offset, file_bytes, physical, linear: physical, memory_bytes };
    Ok((Segments::from_iter([segment]), entry))
}

/// The information structure with the two lists it points to (section 3.3).
fn write_information(
    memory: &impl GuestMemory,
    structures: &Structures,
    [command_line, loader_name]: [Gpa; 2],
    modules: &PlacedModules,
) -> Result<(), LoadError> {
    let memory_bytes = memory.size_bytes();
    let map = memory_map_bytes(memory_bytes);
    let module_list = structures.lists.0 as u32 + map.len() as u32;
    let mut lists = map.clone();
    for module in modules {
        let start = module.start.0 as u32;
        put(&mut lists, &[start, start + module.bytes as u32, module.command_line.0 as u32, 0]);
    }
    let lower_kib = (layout::CONVENTIONAL_END.0 / 1024) as u32;
    let upper_kib = (memory_bytes.min(layout::LOW_MEMORY_END.0) - layout::KERNEL.0) / 1024;
    let mut info = Vec::new();
    put(&mut info, &[INFO_FLAGS, lower_kib, upper_kib as u32, 0, command_line.0 as u32]);
    put(&mut info, &[modules.len() as u32, module_list, 0, 0, 0, 0]);
    put(&mut info, &[map.len() as u32, structures.lists.0 as u32, 0, 0, 0, loader_name.0 as u32]);
    // APM table and the VBE fields: absent, as the flags state.
    put(&mut info, &[0; 6]);
    memory.write(structures.lists, &lists)?;
    Ok(memory.write(structures.info, &info)?)
}

/// The memory map: each entry after its own size, which does not count itself.
fn memory_map_bytes(memory_bytes: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in &memory_map(memory_bytes) {
        put(&mut bytes, &[20]);
        bytes.extend_from_slice(&entry.start.0.to_le_bytes());
        bytes.extend_from_slice(&entry.bytes.to_le_bytes());
        put(&mut bytes, &[entry.kind as u32]);
    }
    bytes
}

fn put(into: &mut Vec<u8>, values: &[u32]) {
    values.iter().for_each(|value| into.extend_from_slice(&value.to_le_bytes()));
}
