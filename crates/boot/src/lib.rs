// SPDX-License-Identifier: MIT OR Apache-2.0
//! The information that the boot loader has passed: memory map, modules, command line and its typed options.
//!
//! Each boot protocol has a module that turns its structures into one neutral [`BootInfo`]; no code behind it depends
//! on the protocol: PVH ([`pvh`]), Multiboot2 ([`multiboot2`]), the Linux boot protocol ([`linux`]). [`loader`]
//! distinguishes them.
//!
//! The loader's information is untrusted input. Every address, count and length is checked; the memory map is
//! normalised, reserved winning over usable; information that a host can do without is left out and noted ([`Note`]),
//! so that a wrong module or a wrong option does not stop the host. Only information that no host can start from is
//! refused.
//!
//! Everything is copied into fixed-capacity structures: there is no heap yet, and the loader's memory may be reused.
//! A [`BootInfo`] takes about 10 KiB.
#![no_std]

#[cfg(test)]
extern crate std;

mod info;
pub mod linux;
pub mod loader;
mod memory_map;
pub mod multiboot2;
pub mod options;
mod physical;
pub mod pvh;
pub mod self_tests;

pub use info::{BootInfo, COMMAND_LINE_BYTES, MAXIMUM_MODULES, MODULE_COMMAND_LINE_BYTES, Module, Note, Protocol};
pub use memory_map::{MAXIMUM_REGIONS, MapBuilder, MemoryMap, Region, RegionKind, TooManyRegions};
pub use options::{Complaint, OPTIONS, Options};
pub use physical::{PhysicalMemory, may_be_read};
pub use units::{PhysAddr, PhysRange};

#[cfg(test)]
mod tests;
