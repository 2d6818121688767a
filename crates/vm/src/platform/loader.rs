// SPDX-License-Identifier: MIT OR Apache-2.0
//! Putting a kernel into guest memory and describing the state it starts in.
//!
//! Three kinds of kernel are known; [`recognise`] distinguishes them by their magic numbers, in this order:
//!
//! | kind | magic | starts in | learns of its machine by |
//! |---|---|---|---|
//! | Linux bzImage | `HdrS` at 0x202 | 64-bit mode, identity map | zero page (RSI) |
//! | PVH | ELF note `Xen`, type 18 | 32-bit mode, no paging | `hvm_start_info` (EBX) |
//! | Multiboot 1 | 0x1BADB002 in the first 8 KiB | 32-bit mode, no paging | information structure (EBX) |
//!
//! Three rules keep everything apart. A kernel lies below 640 KiB, or at 1 MiB or above, never where the ACPI tables
//! are. The boot structures lie below 640 KiB ([`layout::boot`]); where a PVH or Multiboot kernel lies there, they are
//! placed around it. Modules are placed downwards from the end of low memory and never below the end of the kernel. An
//! image is untrusted input: each range in it is checked before a byte is copied, and a refusal states the fix.
//! Every byte of kernel and modules is copied exactly once.

mod command_line;
mod elf;
mod entry;
mod error;
mod linux;
mod memory_map;
mod module;
mod multiboot;
mod place;
mod pvh;
mod structures;

#[cfg(test)]
mod tests;

use self::command_line::check_command_line;
use crate::memory::GuestMemory;
use crate::platform::layout::boot;
use crate::vcpu::EntryState;

pub use error::LoadError;
pub use memory_map::{MAX_MAP_ENTRIES, MapEntry, MemoryKind, MemoryMap, memory_map};
pub use module::{MAX_MODULES, Module};

/// The kinds of kernel that can be loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelKind {
    /// A Linux bzImage.
    Linux,
    /// An ELF file with a PVH entry note.
    Pvh,
    /// A Multiboot 1 image.
    Multiboot,
}

/// Returns the kind of kernel that an image is.
pub fn recognise(image: &[u8]) -> Result<KernelKind, LoadError> {
    if linux::is_linux(image) {
        return Ok(KernelKind::Linux);
    }
    if elf::is_elf(image) && elf::parse(image)?.pvh_entry.is_some() {
        return Ok(KernelKind::Pvh);
    }
    if multiboot::find_header(image).is_some() {
        return Ok(KernelKind::Multiboot);
    }
    Err(LoadError::NotAKernel)
}

/// Loads a kernel with its command line and modules; returns how the first CPU starts.
///
/// The ACPI tables are the caller's: it writes [`crate::platform::acpi::build`]'s bytes to
/// [`crate::platform::layout::ACPI_TABLES`]. After an error guest memory may be partly written.
pub fn load(
    memory: &impl GuestMemory,
    image: &[u8],
    command_line: &[u8],
    modules: &[Module<'_>],
) -> Result<EntryState, LoadError> {
    place::check_memory(memory)?;
    check_command_line(command_line, boot::COMMAND_LINE_BYTES - 1)?;
    match recognise(image)? {
        KernelKind::Linux => linux::load(memory, image, command_line, modules),
        KernelKind::Pvh => pvh::load(memory, image, command_line, modules),
        KernelKind::Multiboot => multiboot::load(memory, image, command_line, modules),
    }
}
