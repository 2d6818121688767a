// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pointer to EPT's root (section 25.6.11).

use bitfield_struct::bitfield;
use paging::PhysAddr;

use super::entry::MemoryType;

/// The EPT pointer, EPTP.
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct Eptp {
    /// [`MemoryType`] of the tables themselves: 0 or 6.
    #[bits(3)]
    pub memory_type: u8,
    /// Levels of a walk, less one.
    #[bits(3)]
    pub levels_less_one: u8,
    /// The CPU sets accessed and dirty flags.
    pub accessed_and_dirty: bool,
    /// Supervisor shadow-stack pages are enforced.
    pub supervisor_shadow_stack: bool,
    #[bits(4)]
    pub reserved: u8,
    /// The root's address in pages.
    #[bits(52)]
    pub root_page: u64,
}

impl Eptp {
    /// Tables of four levels at `root`, cached write-back, without accessed and dirty flags.
    pub const fn of_tables(root: PhysAddr) -> Self {
        Self::new().with_memory_type(MemoryType::WriteBack as u8).with_levels_less_one(3).with_root_page(root.0 >> 12)
    }
}
