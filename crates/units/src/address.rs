// SPDX-License-Identifier: MIT OR Apache-2.0
//! Physical addresses of the machine itself (a guest's are `vm::addr::Gpa`: the two must never be mixed up).

use core::fmt;

/// No x86-64 CPU has physical addresses of more than 52 bits (AMD APM vol 2, section 5.1).
pub const PHYSICAL_LIMIT: u64 = 1 << 52;

/// A physical address of the machine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PhysAddr(pub u64);

impl PhysAddr {
    /// This address `bytes` further on; `None` past the end of the address space.
    pub const fn checked_add(self, bytes: u64) -> Option<Self> {
        match self.0.checked_add(bytes) {
            Some(sum) => Some(Self(sum)),
            None => None,
        }
    }

    /// Returns whether the address is a multiple of `alignment`, a power of two.
    pub const fn is_aligned(self, alignment: u64) -> bool {
        debug_assert!(alignment.is_power_of_two());
        self.0 & (alignment - 1) == 0
    }

    /// The nearest multiple of `alignment`, a power of two, at or below this address.
    pub const fn align_down(self, alignment: u64) -> Self {
        debug_assert!(alignment.is_power_of_two());
        Self(self.0 & !(alignment - 1))
    }

    /// The nearest multiple of `alignment`, a power of two, at or above this address; `None` if there is none.
    pub const fn align_up(self, alignment: u64) -> Option<Self> {
        match self.checked_add(alignment - 1) {
            Some(sum) => Some(sum.align_down(alignment)),
            None => None,
        }
    }
}

impl fmt::Debug for PhysAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "physical {:#x}", self.0)
    }
}

impl fmt::Display for PhysAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}
