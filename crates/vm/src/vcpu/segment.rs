// SPDX-License-Identifier: MIT OR Apache-2.0
//! Segment registers and descriptor tables' registers, in the layout of descriptors.

use bitflags::bitflags;
use handover::state::SegmentRegister;

/// Segment registers and descriptor tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum SegmentName {
    Es,
    Cs,
    Ss,
    Ds,
    Fs,
    Gs,
    Ldtr,
    Tr,
}

bitflags! {
    /// A segment's access rights: bits 40 to 55 of its descriptor, as LAR loads them (Intel SDM vol. 3, section 3.4.5)
    /// and VMX's fields hold them; the limit's bits among them are zero. The conversion to a control block that packs
    /// them otherwise is below the seam.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct AccessRights: u16 {
        /// The segment has been loaded.
        const ACCESSED = 1 << 0;
        /// Code: readable. Data: writable.
        const READABLE_OR_WRITABLE = 1 << 1;
        /// Code: conforming. Data: grows down.
        const CONFORMING_OR_GROWS_DOWN = 1 << 2;
        /// Code, not data.
        const CODE = 1 << 3;
        /// Code or data, not a system segment (S).
        const CODE_OR_DATA = 1 << 4;
        /// Present.
        const PRESENT = 1 << 7;
        /// For software (AVL).
        const AVAILABLE = 1 << 12;
        /// 64-bit code (L).
        const LONG = 1 << 13;
        /// 32-bit code or stack (D/B).
        const DEFAULT_32 = 1 << 14;
        /// The limit counts pages (G).
        const GRANULAR = 1 << 15;
        const _ = !0;
    }
}

impl AccessRights {
    /// Of a 16-bit code segment: present, readable, accessed.
    pub const CODE_16: Self = Self::PRESENT
        .union(Self::CODE_OR_DATA)
        .union(Self::CODE)
        .union(Self::READABLE_OR_WRITABLE)
        .union(Self::ACCESSED);
    /// Of a 16-bit data segment: present, writable, accessed.
    pub const DATA_16: Self =
        Self::PRESENT.union(Self::CODE_OR_DATA).union(Self::READABLE_OR_WRITABLE).union(Self::ACCESSED);
    /// The same for 32 bits and 4 GiB.
    pub const DATA_32: Self = Self::DATA_16.union(Self::DEFAULT_32).union(Self::GRANULAR);
    /// Code of 32 bits and 4 GiB.
    pub const CODE_32: Self = Self::CODE_16.union(Self::DEFAULT_32).union(Self::GRANULAR);
    /// Code of 64 bits.
    pub const CODE_64: Self = Self::CODE_16.union(Self::LONG).union(Self::GRANULAR);
    /// A busy task state segment, present.
    pub const BUSY_TASK: Self = Self::PRESENT.union(Self::from_bits_retain(0b1011));
    /// A local descriptor table, present.
    pub const LOCAL_TABLE: Self = Self::PRESENT.union(Self::from_bits_retain(0b0010));

    /// From the packed form: descriptor bits 52–55 follow bits 40–47. The hand-over, the control channel and AMD's
    /// control block (AMD APM vol. 2, section 15.5.1) have it.
    #[inline(always)]
    pub const fn from_packed(packed: u16) -> Self {
        Self::from_bits_retain(packed & 0xff | (packed & 0xf00) << 4)
    }

    /// The packed form.
    #[inline(always)]
    pub const fn packed(self) -> u16 {
        self.bits() & 0xff | self.bits() >> 4 & 0xf00
    }
}

/// A segment register with its hidden part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Segment {
    /// The visible selector.
    pub selector: u16,
    /// Its descriptor's access rights.
    pub rights: AccessRights,
    /// Limit in bytes, granularity applied.
    pub limit: u32,
    /// Linear base address.
    pub base: u64,
}

/// A descriptor table register (GDTR, IDTR).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct TableRegister {
    /// Linear address of the table.
    pub base: u64,
    /// Its size in bytes less one.
    pub limit: u16,
}

impl From<Segment> for SegmentRegister {
    fn from(Segment { selector, rights, limit, base }: Segment) -> Self {
        Self { selector: selector.into(), attributes: rights.packed().into(), limit: limit.into(), base: base.into() }
    }
}

impl From<SegmentRegister> for Segment {
    fn from(SegmentRegister { selector, attributes, limit, base }: SegmentRegister) -> Self {
        let rights = AccessRights::from_packed(attributes.get());
        Self { selector: selector.get(), rights, limit: limit.get(), base: base.get() }
    }
}

impl From<TableRegister> for SegmentRegister {
    fn from(TableRegister { base, limit }: TableRegister) -> Self {
        Segment { limit: limit.into(), base, ..Segment::default() }.into()
    }
}

#[cfg(test)]
#[path = "segment_tests.rs"]
mod tests;
