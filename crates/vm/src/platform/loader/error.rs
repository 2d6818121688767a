// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reasons why a kernel was not loaded, with hints.

use core::fmt;

use crate::addr::Gpa;
use crate::memory::OutOfRange;

const MIB: u64 = 1 << 20;

/// The reason why a kernel was not loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// No magic number fits.
    NotAKernel,
    /// A header promises more bytes than the file has.
    Truncated {
        /// The part that is cut off.
        part: &'static str,
        /// Bytes the file would need.
        needed_bytes: u64,
        /// Bytes it has.
        present_bytes: u64,
    },
    /// A Linux kernel from before boot protocol 2.12.
    OldBootProtocol {
        /// Major in the high byte, minor in the low.
        version: u16,
    },
    /// A Linux kernel without the 64-bit entry point (XLF_KERNEL_64).
    No64BitEntry,
    /// A Linux header field with a value that no kernel has.
    BadLinuxHeader {
        /// The field and the problem with it.
        reason: &'static str,
    },
    /// An ELF file that cannot be loaded.
    BadElf {
        /// The reason.
        reason: &'static str,
    },
    /// A Multiboot header that cannot be obeyed.
    BadMultiboot {
        /// The reason.
        reason: &'static str,
    },
    /// The Multiboot header demands a feature that is not given here.
    MultibootFeatures {
        /// The flags not supported.
        flags: u32,
    },
    /// A part of the kernel lies between 640 KiB and 1 MiB.
    InReservedMemory {
        /// First address.
        address: Gpa,
        /// End address.
        end: u64,
    },
    /// Two segments claim the same memory.
    SegmentsOverlap {
        /// First address of the second one.
        address: Gpa,
    },
    /// The entry point is in no segment.
    EntryOutside {
        /// The entry point.
        address: u64,
    },
    /// The kernel does not fit into the guest's low memory.
    KernelTooLarge {
        /// End address of the kernel, with the memory that it needs to unpack.
        end: u64,
        /// Bytes of guest memory.
        memory_bytes: u64,
    },
    /// The kernel reaches into the PCI hole, which no amount of memory fills.
    InPciHole {
        /// End address of the kernel.
        end: u64,
    },
    /// A module does not fit above the kernel.
    ModuleTooLarge {
        /// "initrd" or "module".
        name: &'static str,
        /// Its bytes.
        bytes: u64,
        /// Bytes of guest memory.
        memory_bytes: u64,
        /// Bytes of guest memory that would do; `None` if it fits into no guest (address limits).
        needed_bytes: Option<u64>,
    },
    /// More modules than there is room to list.
    TooManyModules {
        /// Number that was given.
        count: usize,
    },
    /// The command line is too long for this kernel.
    CommandLineTooLong {
        /// Its bytes.
        bytes: usize,
        /// Bytes allowed.
        limit_bytes: usize,
    },
    /// The command lines of kernel and modules together do not fit into their area.
    CommandLinesTooLong {
        /// Bytes of the area.
        limit_bytes: usize,
    },
    /// A command line contains a zero byte, which ends it.
    CommandLineHasZero {
        /// Offset in bytes.
        offset: usize,
    },
    /// The guest has too little memory for any kernel.
    TooLittleMemory {
        /// Bytes of guest memory.
        memory_bytes: u64,
    },
    /// Guest memory refused a write inside the range that it states.
    Memory(OutOfRange),
}

impl From<OutOfRange> for LoadError {
    fn from(refused: OutOfRange) -> Self {
        Self::Memory(refused)
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NotAKernel => {
                write!(
                    f,
                    "not a kernel: neither bzImage, PVH nor Multiboot ELF: give a kernel image, such as /boot/vmlinuz-*"
                )
            }
            Self::Truncated { part, needed_bytes, present_bytes } => write!(
                f,
                "kernel image is truncated: {part} needs {needed_bytes} bytes, the file has {present_bytes}: copy it \
                 again"
            ),
            Self::OldBootProtocol { version } => write!(
                f,
                "Linux boot protocol {}.{:02} is too old: give a kernel of version 3.8 or newer (protocol 2.12)",
                version >> 8,
                version & 0xff
            ),
            Self::No64BitEntry => write!(f, "Linux kernel has no 64-bit entry: give an x86-64 kernel"),
            Self::BadLinuxHeader { reason } => {
                write!(f, "Linux setup header refused: {reason}: give an intact bzImage")
            }
            Self::BadElf { reason } => write!(f, "ELF kernel refused: {reason}: give an intact x86 ELF kernel"),
            Self::BadMultiboot { reason } => write!(f, "Multiboot header refused: {reason}: link it again"),
            Self::MultibootFeatures { flags } => write!(
                f,
                "Multiboot header demands features {flags:#x} that are not given: clear these bits of its flags"
            ),
            Self::InReservedMemory { address, end } => write!(
                f,
                "kernel part from {address} to {end:#x} reaches between 640 KiB and 1 MiB, where a PC has video \
                 memory, ROMs and ACPI tables: link it below 640 KiB, or at 1 MiB or above"
            ),
            Self::SegmentsOverlap { address } => {
                write!(f, "kernel segments overlap at {address}: link the kernel without overlaps")
            }
            Self::EntryOutside { address } => {
                write!(f, "kernel entry point {address:#x} is in no segment: link it again")
            }
            Self::KernelTooLarge { end, memory_bytes } => write!(
                f,
                "kernel does not fit into {} MiB of guest memory: give the guest memory >= {} MiB",
                memory_bytes / MIB,
                end.div_ceil(MIB)
            ),
            Self::InPciHole { end } => {
                write!(f, "kernel ends at {end:#x}, above 3 GiB where the PCI hole begins: link it lower")
            }
            Self::ModuleTooLarge { .. } => self.fmt_module_too_large(f),
            Self::TooManyModules { count } => {
                write!(f, "{count} modules are too many: give at most {}", super::MAX_MODULES)
            }
            Self::CommandLineTooLong { bytes, limit_bytes } => {
                write!(f, "command line of {bytes} bytes is too long for this kernel: give at most {limit_bytes} bytes")
            }
            Self::CommandLinesTooLong { limit_bytes } => {
                write!(f, "command lines of kernel and modules do not fit into {limit_bytes} bytes: shorten them")
            }
            Self::CommandLineHasZero { offset } => {
                write!(f, "command line has a zero byte at offset {offset}: remove it")
            }
            Self::TooLittleMemory { memory_bytes } => {
                write!(f, "guest memory of {} KiB is too little: give the guest memory >= 2 MiB", memory_bytes / 1024)
            }
            Self::Memory(refused) => {
                write!(f, "guest memory refused a write: {refused}: give the guest contiguous memory")
            }
        }
    }
}

impl LoadError {
    fn fmt_module_too_large(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::ModuleTooLarge { name, bytes, memory_bytes, needed_bytes } = *self else { return Ok(()) };
        write!(f, "{name} ({}) does not fit into {} of guest memory: ", Size(bytes), Size(memory_bytes))?;
        match needed_bytes {
            Some(needed) => write!(f, "give the guest memory >= {} MiB or a smaller {name}", needed.div_ceil(MIB)),
            None => write!(f, "give a smaller {name}"),
        }
    }
}

/// A size in the unit people use for it, rounded up.
struct Size(u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 >= MIB {
            write!(f, "{} MiB", self.0.div_ceil(MIB))
        } else {
            write!(f, "{} KiB", self.0.div_ceil(1024))
        }
    }
}

impl core::error::Error for LoadError {}
