// SPDX-License-Identifier: MIT OR Apache-2.0
//! Placement in guest memory: checked ranges for kernels, space for modules, zeroes for BSS.

use arrayvec::ArrayVec;

use super::memory_map::low_memory_end;
use super::{LoadError, MAX_MODULES, Module, check_command_line};
use crate::addr::Gpa;
use crate::memory::GuestMemory;
use crate::platform::layout::{self, boot};

/// A guest has at least this much memory: the boot structures and 1 MiB for a kernel.
const LEAST_MEMORY_BYTES: u64 = 0x20_0000;
const PAGE_BYTES: u64 = 0x1000;

/// A module in guest memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlacedModule {
    /// First address.
    pub start: Gpa,
    /// Its bytes.
    pub bytes: u64,
    /// Its command line, zero-terminated.
    pub command_line: Gpa,
}

pub(super) type PlacedModules = ArrayVec<PlacedModule, MAX_MODULES>;

pub(super) fn check_memory(memory: &impl GuestMemory) -> Result<(), LoadError> {
    match memory.size_bytes() {
        memory_bytes if memory_bytes < LEAST_MEMORY_BYTES => Err(LoadError::TooLittleMemory { memory_bytes }),
        _ => Ok(()),
    }
}

/// Checks that a part of a kernel may occupy `[start, start + bytes)`; returns the end.
pub(super) fn check_kernel(memory: &impl GuestMemory, start: u64, bytes: u64) -> Result<u64, LoadError> {
    let end = start.saturating_add(bytes);
    if start < layout::KERNEL.0 && end > layout::CONVENTIONAL_END.0 {
        return Err(LoadError::InReservedMemory { address: Gpa(start), end });
    }
    if end > layout::LOW_MEMORY_END.0 {
        return Err(LoadError::InPciHole { end });
    }
    let memory_bytes = memory.size_bytes();
    if end > memory_bytes {
        return Err(LoadError::KernelTooLarge { end, memory_bytes });
    }
    Ok(end)
}

/// Room for modules: from `floor` up to `limit` or the end of low memory, given out from the top.
pub(super) struct ModuleRoom {
    name: &'static str,
    floor: u64,
    top: u64,
    limit: u64,
    /// Bytes given out, each module rounded up to pages.
    given_bytes: u64,
    memory_bytes: u64,
}

impl ModuleRoom {
    /// Room above `floor`, where the kernel ends, and below `limit`; `name` is for messages.
    pub fn new(memory: &impl GuestMemory, name: &'static str, floor: u64, limit: u64) -> Self {
        let memory_bytes = memory.size_bytes();
        let top = low_memory_end(memory_bytes).min(limit);
        Self { name, floor, top, limit: limit.min(layout::LOW_MEMORY_END.0), given_bytes: 0, memory_bytes }
    }

    /// The highest page-aligned range of `bytes` bytes left.
    pub fn take(&mut self, bytes: u64) -> Result<Gpa, LoadError> {
        let start = self.top.checked_sub(bytes).map(|start| start & !(PAGE_BYTES - 1));
        match start.filter(|&start| start >= self.floor) {
            Some(start) => {
                self.given_bytes += self.top - start;
                self.top = start;
                Ok(Gpa(start))
            }
            None => Err(self.too_large(bytes)),
        }
    }

    fn too_large(&self, bytes: u64) -> LoadError {
        let pages = bytes.checked_next_multiple_of(PAGE_BYTES).unwrap_or(u64::MAX);
        let needed = self.floor.saturating_add(self.given_bytes).saturating_add(pages);
        LoadError::ModuleTooLarge {
            name: self.name,
            bytes,
            memory_bytes: self.memory_bytes,
            needed_bytes: (needed <= self.limit).then_some(needed),
        }
    }
}

/// Copies modules to the top of low memory, not below `floor`, and their command lines after the kernel's.
pub(super) fn place_modules(
    memory: &impl GuestMemory,
    modules: &[Module<'_>],
    floor: u64,
    lines: &mut CommandLines,
) -> Result<PlacedModules, LoadError> {
    let mut room = ModuleRoom::new(memory, "module", floor, layout::LOW_MEMORY_END.0);
    let mut placed = PlacedModules::new();
    for module in modules {
        let start = room.take(module.bytes.len() as u64)?;
        let command_line = lines.add(memory, module.command_line)?;
        let entry = PlacedModule { start, bytes: module.bytes.len() as u64, command_line };
        placed.try_push(entry).map_err(|_| LoadError::TooManyModules { count: modules.len() })?;
        memory.write(start, module.bytes)?;
    }
    Ok(placed)
}

/// The area for command lines, filled from its start.
pub(super) struct CommandLines {
    start: Gpa,
    used_bytes: usize,
}

impl CommandLines {
    pub const fn new(start: Gpa) -> Self {
        Self { start, used_bytes: 0 }
    }

    /// Writes one more line with its terminator; returns where.
    pub fn add(&mut self, memory: &impl GuestMemory, line: &[u8]) -> Result<Gpa, LoadError> {
        check_command_line(line, boot::COMMAND_LINE_BYTES - 1)?;
        let end_bytes = self.used_bytes + line.len() + 1;
        if end_bytes > boot::COMMAND_LINE_BYTES {
            return Err(LoadError::CommandLinesTooLong { limit_bytes: boot::COMMAND_LINE_BYTES });
        }
        let start = Gpa(self.start.0 + self.used_bytes as u64);
        memory.write(start, line)?;
        memory.write(Gpa(start.0 + line.len() as u64), &[0])?;
        self.used_bytes = end_bytes;
        Ok(start)
    }
}

/// Writes zeroes; the range has been checked.
pub(super) fn zero(memory: &impl GuestMemory, start: Gpa, bytes: u64) -> Result<(), LoadError> {
    let zeroes = [0; 256];
    let mut at = start.0;
    let end = start.0.saturating_add(bytes);
    while at < end {
        let chunk = (end - at).min(zeroes.len() as u64);
        memory.write(Gpa(at), &zeroes[..chunk as usize])?;
        at += chunk;
    }
    Ok(())
}
