// SPDX-License-Identifier: MIT OR Apache-2.0
//! The three page sizes of x86-64.

use core::fmt;

use crate::size::{GIB, KIB, MIB};

/// Bytes of the smallest page, and of a frame.
pub const PAGE_BYTES: u64 = 4 * KIB;

/// A page size (AMD APM vol 2, section 5.3). Ordered by size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PageSize {
    /// 4 KiB.
    Kib4,
    /// 2 MiB.
    Mib2,
    /// 1 GiB: only where CPUID `8000_0001h` EDX bit 26 is set.
    Gib1,
}

impl PageSize {
    /// All sizes, the smallest first.
    pub const ALL: [Self; 3] = [Self::Kib4, Self::Mib2, Self::Gib1];

    /// The size in bytes, which is also the alignment.
    pub const fn bytes(self) -> u64 {
        match self {
            Self::Kib4 => PAGE_BYTES,
            Self::Mib2 => 2 * MIB,
            Self::Gib1 => GIB,
        }
    }
}

impl fmt::Display for PageSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Kib4 => "4 KiB",
            Self::Mib2 => "2 MiB",
            Self::Gib1 => "1 GiB",
        })
    }
}
