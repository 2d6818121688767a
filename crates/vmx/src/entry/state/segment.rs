// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest's segment register as the VMCS holds it (section 25.4.1).

use vm::vcpu::{AccessRights, Segment};

use crate::field::{Field16, Field32, FieldNatural, Vmcs};

/// A guest's segment register.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GuestSegment {
    /// The visible selector.
    pub selector: u16,
    /// [`AccessRights`] in the low half, and [`GuestSegment::UNUSABLE`].
    pub rights: u32,
    /// Limit in bytes.
    pub limit: u32,
    /// Linear base address.
    pub base: u64,
}

impl GuestSegment {
    /// Access right of a register that has been loaded with a null selector, or never.
    pub const UNUSABLE: u32 = 1 << 16;

    /// Returns whether it can be used to access memory.
    pub const fn is_usable(&self) -> bool {
        self.rights & Self::UNUSABLE == 0
    }

    /// Returns whether an access right is there.
    pub const fn has(&self, right: AccessRights) -> bool {
        self.rights & right.bits() as u32 != 0
    }

    /// Type, 0–15.
    pub const fn kind(&self) -> u32 {
        self.rights & 0xf
    }

    /// Descriptor privilege level.
    pub const fn dpl(&self) -> u8 {
        (self.rights >> 5 & 3) as u8
    }

    /// Requested privilege level of the selector.
    pub const fn rpl(&self) -> u8 {
        (self.selector & 3) as u8
    }

    /// The selector is of the local descriptor table.
    pub const fn is_local(&self) -> bool {
        self.selector & 1 << 2 != 0
    }

    /// Reads the segment with a number in [`vm::vcpu::SegmentName`], 0–7.
    pub(super) fn load(vmcs: &impl Vmcs, at: usize) -> Self {
        Self {
            selector: vmcs.read_16(Field16::GUEST_SELECTORS[at]),
            rights: vmcs.read_32(Field32::GUEST_ACCESS_RIGHTS[at]),
            limit: vmcs.read_32(Field32::GUEST_LIMITS[at]),
            base: vmcs.read_natural(FieldNatural::GUEST_BASES[at]),
        }
    }

    /// Writes it.
    pub(super) fn store(&self, vmcs: &mut impl Vmcs, at: usize) {
        vmcs.write_16(Field16::GUEST_SELECTORS[at], self.selector);
        vmcs.write_32(Field32::GUEST_ACCESS_RIGHTS[at], self.rights);
        vmcs.write_32(Field32::GUEST_LIMITS[at], self.limit);
        vmcs.write_natural(FieldNatural::GUEST_BASES[at], self.base);
    }
}

/// A segment that is not present cannot have been loaded: it is unusable.
impl From<Segment> for GuestSegment {
    fn from(Segment { selector, rights, limit, base }: Segment) -> Self {
        let unusable = if rights.contains(AccessRights::PRESENT) { 0 } else { Self::UNUSABLE };
        Self { selector, rights: u32::from(rights.bits()) | unusable, limit, base }
    }
}

impl From<GuestSegment> for Segment {
    fn from(segment: GuestSegment) -> Self {
        let rights = AccessRights::from_bits_retain(segment.rights as u16);
        let rights = if segment.is_usable() { rights } else { rights.difference(AccessRights::PRESENT) };
        Self { selector: segment.selector, rights, limit: segment.limit, base: segment.base }
    }
}
