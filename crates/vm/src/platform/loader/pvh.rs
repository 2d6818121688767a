// SPDX-License-Identifier: MIT OR Apache-2.0
//! PVH kernels: an ELF file whose note names a 32-bit entry point (Xen, "x86/HVM direct boot ABI").

use alloc::vec::Vec;

use super::place::{self, CommandLines, PlacedModules};
use super::structures::Structures;
use super::{LoadError, Module, elf, entry, memory_map};
use crate::addr::Gpa;
use crate::memory::GuestMemory;
use crate::platform::layout;
use crate::vcpu::EntryState;

const START_INFO_MAGIC: u32 = 0x336e_c578;
/// The version that has a memory map.
const START_INFO_VERSION: u32 = 1;

/// Loads a PVH kernel.
pub(super) fn load(
    memory: &impl GuestMemory,
    image: &[u8],
    command_line: &[u8],
    modules: &[Module<'_>],
) -> Result<EntryState, LoadError> {
    let elf = elf::parse(image)?;
    let entry = elf.pvh_entry.ok_or(LoadError::NotAKernel)?;
    elf::check_entry(&elf.segments, entry)?;
    let kernel_end = elf::check_segments(memory, &elf.segments)?;
    let structures = Structures::around(memory, &elf.segments, kernel_end)?;
    elf::load_segments(memory, image, &elf.segments)?;
    let mut lines = CommandLines::new(structures.command_lines);
    let command_line = lines.add(memory, command_line)?;
    let modules = place::place_modules(memory, modules, structures.floor, &mut lines)?;
    write_start_info(memory, &structures, command_line, &modules)?;
    Ok(entry::protected_mode(memory, entry, 0, &structures)?)
}

/// `hvm_start_info` with the two lists it points to.
fn write_start_info(
    memory: &impl GuestMemory,
    structures: &Structures,
    command_line: Gpa,
    modules: &PlacedModules,
) -> Result<(), LoadError> {
    let map = memory_map(memory.size_bytes());
    let mut lists = Vec::new();
    for entry in &map {
        put_u64s(&mut lists, &[entry.start.0, entry.bytes]);
        put_u32s(&mut lists, &[entry.kind as u32, 0]);
    }
    let module_list = Gpa(structures.lists.0 + lists.len() as u64);
    for module in modules {
        put_u64s(&mut lists, &[module.start.0, module.bytes, module.command_line.0, 0]);
    }
    let mut info = Vec::new();
    put_u32s(&mut info, &[START_INFO_MAGIC, START_INFO_VERSION, 0, modules.len() as u32]);
    put_u64s(&mut info, &[module_list.0, command_line.0, layout::ACPI_TABLES.0, structures.lists.0]);
    put_u32s(&mut info, &[map.len() as u32, 0]);
    memory.write(structures.lists, &lists)?;
    Ok(memory.write(structures.info, &info)?)
}

fn put_u32s(into: &mut Vec<u8>, values: &[u32]) {
    values.iter().for_each(|value| into.extend_from_slice(&value.to_le_bytes()));
}

fn put_u64s(into: &mut Vec<u8>, values: &[u64]) {
    values.iter().for_each(|value| into.extend_from_slice(&value.to_le_bytes()));
}
