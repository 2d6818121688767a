// SPDX-License-Identifier: MIT OR Apache-2.0
//! The names of tables.

use core::fmt;

/// A table's four letter name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature(pub [u8; 4]);

impl Signature {
    /// The root pointer, which has no four letter name of its own.
    pub const RSDP: Self = Self(*b"RSDP");
    /// Root table, 32-bit addresses.
    pub const RSDT: Self = Self(*b"RSDT");
    /// Root table, 64-bit addresses.
    pub const XSDT: Self = Self(*b"XSDT");
    /// Multiple APIC description table.
    pub const MADT: Self = Self(*b"APIC");
    /// Fixed ACPI description table.
    pub const FADT: Self = Self(*b"FACP");
    /// Differentiated system description table: AML.
    pub const DSDT: Self = Self(*b"DSDT");
    /// High precision event timer.
    pub const HPET: Self = Self(*b"HPET");
    /// PCI Express memory mapped configuration space.
    pub const MCFG: Self = Self(*b"MCFG");
    /// System resource affinity table: NUMA nodes.
    pub const SRAT: Self = Self(*b"SRAT");
    /// I/O virtualization reporting structure: AMD's IOMMUs.
    pub const IVRS: Self = Self(*b"IVRS");
    /// DMA remapping table: Intel's IOMMUs.
    pub const DMAR: Self = Self(*b"DMAR");

    /// Returns the consequence of not having this table.
    pub(crate) const fn without_it(self) -> Option<&'static str> {
        Some(match self {
            Self::MADT => "only the CPU that booted is used",
            Self::FADT => "no timer port, no reset register, no power-off",
            Self::DSDT => "no power-off",
            Self::HPET => "time is measured by other means",
            Self::MCFG => "PCI is configured through I/O ports",
            Self::SRAT => "all memory counts as equally near",
            Self::IVRS | Self::DMAR => "no device can be assigned to a guest",
            _ => return None,
        })
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.escape_ascii())
    }
}
