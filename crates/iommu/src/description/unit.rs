// SPDX-License-Identifier: MIT OR Apache-2.0
//! A unit, the functions behind it, and firmware's settings for them.

use pci::Bdf;
use units::{PhysAddr, PhysRange};

/// The vendor of a machine's units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// AMD-Vi.
    Amd,
    /// Intel VT-d.
    Intel,
}

/// A unit, as firmware describes it. What it can do, its registers state; firmware's copy of them may differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitDescription {
    /// PCI segment group of the functions behind it.
    pub segment: u16,
    /// The physical address of its registers.
    pub registers: PhysAddr,
    /// Bytes of registers. Not past [`units::PHYSICAL_LIMIT`], and shared with no other unit.
    pub register_bytes: u64,
    /// Every function of the segment is behind it that is behind no other unit (AMD: the entry "all"; Intel:
    /// INCLUDE_PCI_ALL).
    pub covers_rest: bool,
    /// Firmware's settings for all functions behind it (AMD's entry "all").
    pub rest_settings: Settings,
    /// The unit itself as a PCI function (AMD).
    pub function: Option<Bdf>,
    /// Offset of its capability in that function's configuration space (AMD).
    pub capability: u16,
    /// Firmware's settings for its control register (AMD).
    pub link: LinkFlags,
    /// The IVHD's feature or attribute field (AMD 48882 rev 3.10, sections 5.2.2.1 and 5.2.2.3), as it is; 0 for Intel.
    pub attributes: u32,
    /// Firmware's copy of the extended feature register, where the table has one (AMD, IVHD types 11h and 40h).
    pub extended_features: Option<u64>,
    /// Firmware's copy of the extended feature 2 register, likewise.
    pub extended_features_2: Option<u64>,
}

impl UnitDescription {
    /// Returns the addresses of its registers.
    pub fn register_range(&self) -> PhysRange {
        PhysRange::from_start(self.registers, self.register_bytes).unwrap_or_default()
    }
}

/// Firmware's settings for a unit's control register (AMD 48882 rev 3.10, section 5.2.2.1, the IVHD's flags).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkFlags(pub u8);

impl LinkFlags {
    /// HtTunEn: HyperTransport traffic from further units passes through.
    pub const fn has_tunnel(self) -> bool {
        self.0 & 1 != 0
    }

    /// PassPW: upstream posted requests may pass others.
    pub const fn passes_posted_writes(self) -> bool {
        self.0 >> 1 & 1 != 0
    }

    /// ResPassPW: responses may pass other requests.
    pub const fn passes_responses(self) -> bool {
        self.0 >> 2 & 1 != 0
    }

    /// Isoc: its own reads are isochronous.
    pub const fn is_isochronous(self) -> bool {
        self.0 >> 3 & 1 != 0
    }

    /// Coherent: its own reads of tables snoop caches.
    pub const fn is_coherent(self) -> bool {
        self.0 >> 5 & 1 != 0
    }
}

/// Firmware's settings for a function's device table entry (AMD 48882 rev 3.10, section 5.2.2.4, DTE setting):
/// interrupts and system messages that are not remapped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings(pub u8);

impl Settings {
    /// INIT messages pass.
    pub const fn passes_init(self) -> bool {
        self.0 & 1 != 0
    }

    /// ExtInt messages pass.
    pub const fn passes_external_interrupt(self) -> bool {
        self.0 >> 1 & 1 != 0
    }

    /// NMIs pass.
    pub const fn passes_nmi(self) -> bool {
        self.0 >> 2 & 1 != 0
    }

    /// SysMgt, 0 to 3: the system management messages that pass.
    pub const fn system_management(self) -> u8 {
        self.0 >> 4 & 0b11
    }

    /// LINT0 messages pass.
    pub const fn passes_lint0(self) -> bool {
        self.0 >> 6 & 1 != 0
    }

    /// LINT1 messages pass.
    pub const fn passes_lint1(self) -> bool {
        self.0 >> 7 & 1 != 0
    }

    /// Returns the union of both settings.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Functions behind a unit: consecutive requester identifiers of its segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// The unit's place among the description's units.
    pub unit: u8,
    /// The first requester identifier.
    pub first: u16,
    /// The last one; not below the first.
    pub last: u16,
    /// The requester identifier that a unit uses for their transfers, where it is another (AMD).
    pub alias: Option<u16>,
    /// Firmware's settings for them.
    pub settings: Settings,
    /// ATS must not be used with them (AMD).
    pub forbids_ats: bool,
}

impl Scope {
    /// Returns whether the function with this requester identifier is in it.
    pub const fn contains(&self, requester: u16) -> bool {
        self.first <= requester && requester <= self.last
    }

    /// Returns whether it concerns this function: the function is in it, or is the alias of one that is.
    pub fn concerns(&self, requester: u16) -> bool {
        self.contains(requester) || self.alias == Some(requester)
    }

    /// Returns whether the two have a function in common.
    pub const fn overlaps(&self, other: &Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// A source of interrupts that is no PCI function that software can find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterrupterKind {
    /// An I/O APIC, by the identifier that the MADT gives it.
    IoApic,
    /// A high precision event timer, by its number.
    Hpet,
}

/// An I/O APIC or event timer, and the requester identifier with which its interrupts arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupter {
    /// Which of the two.
    pub kind: InterrupterKind,
    /// Its identifier or number.
    pub id: u8,
    /// The place of the unit that it is behind.
    pub unit: u8,
    /// The requester identifier.
    pub requester: u16,
}
