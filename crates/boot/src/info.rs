// SPDX-License-Identifier: MIT OR Apache-2.0
//! The boot information in terms of no boot protocol.

use core::fmt;

use arrayvec::{ArrayString, ArrayVec};
use units::{PAGE_BYTES, PhysAddr, PhysRange};

use crate::memory_map::MemoryMap;

/// Bytes of command line that are kept.
pub const COMMAND_LINE_BYTES: usize = 2048;
/// Bytes of each module's command line that are kept.
pub const MODULE_COMMAND_LINE_BYTES: usize = 128;
/// Modules that are kept.
pub const MAXIMUM_MODULES: usize = 16;
const MAXIMUM_NOTES: usize = 16;

/// The loader or image that started us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Xen's PVH entry, also spoken by QEMU's `-kernel`, Firecracker and Cloud Hypervisor.
    Pvh,
    /// Multiboot2, spoken by GRUB.
    Multiboot2,
    /// The Linux boot protocol, spoken by kexec and by every loader that starts Linux.
    Linux,
    /// The previous image, through `handover`'s record.
    HandOver,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Pvh => "loaded by PVH",
            Self::Multiboot2 => "loaded by Multiboot2",
            Self::Linux => "loaded by the Linux boot protocol",
            Self::HandOver => "handed over",
        })
    }
}

/// A file that the loader put into memory: the bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Module {
    /// Its range; never empty. The frames it touches must be reserved.
    pub range: PhysRange,
    /// Its command line, by the loader; often empty.
    pub command_line: ArrayString<MODULE_COMMAND_LINE_BYTES>,
}

/// Something a loader reported that was left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// This many entries of the memory map were empty or lay outside physical memory.
    AbsurdRegions(usize),
    /// This module is empty or passes the end of physical memory.
    AbsurdModule {
        /// Number of the module, from 0.
        index: u32,
    },
    /// This module's entry in the module list cannot be read.
    UnreadableModule {
        /// Number of the module, from 0.
        index: u32,
    },
    /// More modules than [`MAXIMUM_MODULES`].
    TooManyModules {
        /// Number of modules.
        count: u32,
    },
    /// The chain of Linux setup data cannot be followed to its end.
    UnreadableSetupData {
        /// Address at which it breaks off.
        at: PhysAddr,
    },
    /// The command line (or, with an index, a module's) is longer than is kept.
    CommandLineCut {
        /// Number of the module, if it is a module's.
        module: Option<u32>,
    },
    /// The command line (or, with an index, a module's) lies in unreadable memory.
    CommandLineUnreadable {
        /// Number of the module, if it is a module's.
        module: Option<u32>,
    },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AbsurdRegions(count) => write!(f, "memory map: {count} empty or impossible entries ignored"),
            Self::AbsurdModule { index } => write!(f, "module {index} ignored: empty or outside physical memory"),
            Self::UnreadableModule { index } => write!(f, "module {index} ignored: its list entry cannot be read"),
            Self::TooManyModules { count } => {
                write!(f, "{count} modules loaded, all after the first {MAXIMUM_MODULES} ignored: load one bundle")
            }
            Self::UnreadableSetupData { at } => {
                write!(f, "setup data from {at} on ignored: it cannot be read, and may hold more of the memory map")
            }
            Self::CommandLineCut { module: None } => {
                write!(f, "command line cut after {COMMAND_LINE_BYTES} bytes: shorten it")
            }
            Self::CommandLineCut { module: Some(index) } => {
                write!(f, "command line of module {index} cut after {MODULE_COMMAND_LINE_BYTES} bytes: shorten it")
            }
            Self::CommandLineUnreadable { module: None } => f.write_str("command line ignored: it cannot be read"),
            Self::CommandLineUnreadable { module: Some(index) } => {
                write!(f, "command line of module {index} ignored: it cannot be read")
            }
        }
    }
}

/// The information that the boot loader has passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootInfo {
    /// Its source.
    pub protocol: Protocol,
    /// The machine's memory map, with the ranges of the image, the modules and the tables still in it.
    pub memory_map: MemoryMap,
    /// Files in memory.
    pub modules: ArrayVec<Module, MAXIMUM_MODULES>,
    /// Our command line; see [`crate::options`].
    pub command_line: ArrayString<COMMAND_LINE_BYTES>,
    /// Address of the ACPI tables' root (RSDP), if the loader gives it.
    pub rsdp: Option<PhysAddr>,
    notes: ArrayVec<Note, MAXIMUM_NOTES>,
}

impl BootInfo {
    pub(crate) fn new(protocol: Protocol, memory_map: MemoryMap) -> Self {
        Self {
            protocol,
            memory_map,
            modules: ArrayVec::new(),
            command_line: ArrayString::new(),
            rsdp: None,
            notes: ArrayVec::new(),
        }
    }

    /// Returns the information that the previous image had about the machine. Modules and command line are for the
    /// caller to add.
    pub fn handed_over(memory_map: MemoryMap, rsdp: Option<PhysAddr>) -> Self {
        Self { rsdp, ..Self::new(Protocol::HandOver, memory_map) }
    }

    /// Returns the things that were left out, for the log; the first 16.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// Returns the pages of modules that are not usable memory, by rising address and without overlaps. QEMU puts a
    /// bundle where its firmware, with devices to drive, has reserved some of the pages for itself.
    pub fn modules_beside_memory(&self) -> impl Iterator<Item = PhysRange> + '_ {
        let mut modules: ArrayVec<PhysRange, MAXIMUM_MODULES> =
            self.modules.iter().filter_map(|module| module.range.aligned_outwards(PAGE_BYTES)).collect();
        sort::by_key(&mut modules, |range| range.start());
        let mut from = PhysAddr(0);
        modules.into_iter().flat_map(move |module| {
            let module = PhysRange::new(module.start().max(from), module.end()).unwrap_or_default();
            from = from.max(module.end());
            self.beside_memory(module)
        })
    }

    /// Returns the parts of a range that are not usable memory.
    fn beside_memory(&self, range: PhysRange) -> impl Iterator<Item = PhysRange> + '_ {
        let mut from = range.start();
        let behind_all = PhysRange::new(range.end(), range.end());
        let usable = self.memory_map.usable().filter_map(move |usable| usable.intersection(range));
        usable.chain(behind_all).filter_map(move |usable| {
            let before = PhysRange::new(from, usable.start());
            from = usable.end();
            before.filter(|before| !before.is_empty())
        })
    }

    pub(crate) fn note(&mut self, note: Note) {
        // Bounded on purpose: problems after the first 16 add nothing new.
        let _ = self.notes.try_push(note);
    }
}
