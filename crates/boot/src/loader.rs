// SPDX-License-Identifier: MIT OR Apache-2.0
//! The protocol that a loader speaks, recognised by the magic number with which the image is entered.

use core::fmt;

use units::PhysAddr;

use crate::info::BootInfo;
use crate::linux::{self, LinuxError};
use crate::multiboot2::{self, Multiboot2Error};
use crate::physical::PhysicalMemory;
use crate::pvh::{self, PvhError};

/// No host can start from this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoaderError {
    /// By PVH.
    Pvh(PvhError),
    /// By Multiboot2.
    Multiboot2(Multiboot2Error),
    /// By the Linux boot protocol.
    Linux(LinuxError),
    /// By none of them.
    UnknownProtocol {
        /// With this magic number.
        magic: u32,
    },
}

impl fmt::Display for LoaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pvh(error) => error.fmt(f),
            Self::Multiboot2(error) => error.fmt(f),
            Self::Linux(error) => error.fmt(f),
            Self::UnknownProtocol { magic } => write!(
                f,
                "the loader speaks a protocol with the magic number {magic:#x}: start Baton by PVH, Multiboot2 \
                 (GRUB's multiboot2, not multiboot) or the Linux boot protocol"
            ),
        }
    }
}

impl core::error::Error for LoaderError {}

/// Reads the information that a loader left at `address`, by the protocol with the magic number `magic`.
///
/// # Errors
/// [`LoaderError`] where no host can start.
pub fn parse(memory: &impl PhysicalMemory, magic: u32, address: PhysAddr) -> Result<BootInfo, LoaderError> {
    match magic {
        pvh::MAGIC => pvh::parse(memory, address).map_err(LoaderError::Pvh),
        multiboot2::MAGIC => multiboot2::parse(memory, address).map_err(LoaderError::Multiboot2),
        linux::MAGIC => linux::parse(memory, address).map_err(LoaderError::Linux),
        magic => Err(LoaderError::UnknownProtocol { magic }),
    }
}
