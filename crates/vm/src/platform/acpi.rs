// SPDX-License-Identifier: MIT OR Apache-2.0
//! ACPI tables: how the machine is described to a kernel (ACPI 6.5, hardware-reduced, chapter 4.1).
//!
//! ```text
//! RSDP ─► XSDT ─┬► FADT ─► DSDT   reset and sleep registers; devices that cannot be probed
//!               ├► MADT           local APICs, IOAPIC
//!               └► MCFG           PCI configuration space in memory
//! ```
//!
//! Hardware-reduced means: no PM timer, no SCI, no fixed buttons, no 8259 and no 8254 to search for, which is also what
//! the machine has. The tables are bytes for one place, [`layout::ACPI_TABLES`], inside the area that every kernel
//! scans for the RSDP; they never change while the guest runs.

use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use acpi_tables::Aml;
use acpi_tables::fadt::{FADTBuilder, Flags};
use acpi_tables::gas::{AccessSize, AddressSpace, GAS};
use acpi_tables::madt::{EnabledStatus, IoApic, LocalInterruptController, MADT, ProcessorLocalApic};
use acpi_tables::mcfg::MCFG;
use acpi_tables::rsdp::Rsdp;
use acpi_tables::xsdt::XSDT;

use self::oem::{OEM, OEM_REVISION, OEM_TABLE};
use crate::memory::GuestMemory;
use crate::platform::layout;

mod dsdt;
mod events;
mod hot_plug;
mod lines;
mod made;
mod oem;
mod power_button;
mod x2apic;

#[cfg(test)]
mod tests;

/// vCPUs that the tables have room for.
pub const MAX_VCPUS: u32 = 4096;
/// From this identifier on a CPU is described by an x2APIC entry (0xff is "every one" in a local APIC entry).
const FIRST_X2APIC_ID: u32 = 0xff;
const TABLE_ALIGNMENT: usize = 16;
/// The DSDT, which comes first, ends before.
const SEARCHED_BYTES: usize = 8192;

/// FADT, IA-PC boot architecture flags (ACPI 6.5, table 5.11): no VGA to probe; no 8042, no 8259; CMOS clock present.
const BOOT_ARCHITECTURE: u16 = 1 << 2;

/// Parameters of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AcpiConfig {
    /// vCPUs, with identifiers from 0; 1 to [`MAX_VCPUS`].
    pub vcpus: u32,
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// Bits of a physical address, as CPUID 8000_0008h states them.
    pub address_bits: u8,
}

/// No tables can be made for so many vCPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadVcpuCount {
    /// Number of vCPUs that were asked for.
    pub vcpus: u32,
}

impl fmt::Display for BadVcpuCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} vCPUs cannot be described: give the guest 1 to {MAX_VCPUS}", self.vcpus)
    }
}

impl core::error::Error for BadVcpuCount {}

/// The tables' bytes, to be written to [`layout::ACPI_TABLES`]; the RSDP comes first.
pub fn build(config: &AcpiConfig) -> Result<Vec<u8>, BadVcpuCount> {
    let AcpiConfig { vcpus, memory_bytes, address_bits } = *config;
    if !(1..=MAX_VCPUS).contains(&vcpus) {
        return Err(BadVcpuCount { vcpus });
    }
    let mut tables = Tables { bytes: Vec::new() };
    tables.reserve(Rsdp::len());
    let dsdt = tables.append(&dsdt::dsdt(layout::pci_high(memory_bytes, address_bits)));
    let mut xsdt = XSDT::new(OEM, OEM_TABLE, OEM_REVISION);
    xsdt.add_entry(tables.append(&fadt(dsdt).finalize()));
    xsdt.add_entry(tables.append(&madt(vcpus)));
    xsdt.add_entry(tables.append(&mcfg()));
    let xsdt = tables.append(&xsdt);
    Ok(tables.finish(&Rsdp::new(OEM, xsdt)))
}

/// Returns whether a guest's tables, as they are in its memory, describe the hot-plug controller: those that an image
/// of old has written do not. The memory is the guest's, which deceives but itself.
pub fn describe_hot_plug(memory: &impl GuestMemory) -> bool {
    describe(memory, hot_plug::EVENTS)
}

/// Returns whether they describe the power button, likewise.
pub fn describe_power_button(memory: &impl GuestMemory) -> bool {
    describe(memory, power_button::EVENTS)
}

/// Returns whether they describe INTx lines of PCI functions, likewise.
pub fn describe_lines(memory: &impl GuestMemory) -> bool {
    describe(memory, lines::ROUTING)
}

#[inline(never)]
fn describe(memory: &impl GuestMemory, name: &str) -> bool {
    let mut tables = vec![0; SEARCHED_BYTES];
    let name = name.as_bytes();
    memory.read(layout::ACPI_TABLES, &mut tables).is_ok() && tables.windows(name.len()).any(|window| window == name)
}

/// Tables one after the other, as they will lie in guest memory.
struct Tables {
    bytes: Vec<u8>,
}

impl Tables {
    fn reserve(&mut self, bytes: usize) {
        self.bytes.resize((self.bytes.len() + bytes).next_multiple_of(TABLE_ALIGNMENT), 0);
    }

    /// Appends a table; gives the guest-physical address it will have.
    fn append(&mut self, table: &dyn Aml) -> u64 {
        let address = layout::ACPI_TABLES.0 + self.bytes.len() as u64;
        table.to_aml_bytes(&mut self.bytes);
        self.reserve(0);
        address
    }

    fn finish(mut self, rsdp: &Rsdp) -> Vec<u8> {
        let mut bytes = Vec::new();
        rsdp.to_aml_bytes(&mut bytes);
        self.bytes[..bytes.len()].copy_from_slice(&bytes);
        self.bytes
    }
}

fn fadt(dsdt: u64) -> FADTBuilder {
    let mut fadt = FADTBuilder::new(OEM, OEM_TABLE, OEM_REVISION).dsdt_64(dsdt);
    for flag in [
        Flags::HwReducedAcpi,
        Flags::ResetRegSup,
        Flags::Wbinvd,
        // Set means: no such button in fixed hardware.
        Flags::PwrButton,
        Flags::SlpButton,
        Flags::Headless,
    ] {
        fadt = fadt.flag(flag);
    }
    fadt.iapc_boot_arch = BOOT_ARCHITECTURE.into();
    fadt.reset_reg = byte_port(layout::port::RESET);
    fadt.reset_value = layout::port::RESET_VALUE;
    fadt.sleep_control_reg = byte_port(layout::port::SLEEP_CONTROL);
    fadt.sleep_status_reg = byte_port(layout::port::SLEEP_CONTROL + 1);
    fadt
}

fn byte_port(port: u16) -> GAS {
    GAS::new(AddressSpace::SystemIo, 8, 0, AccessSize::ByteAccess, port.into())
}

fn madt(vcpus: u32) -> MADT {
    let local_apic = LocalInterruptController::Address(layout::LOCAL_APIC.0 as u32);
    let mut madt = MADT::new(OEM, OEM_TABLE, OEM_REVISION, local_apic);
    for id in 0..vcpus.min(FIRST_X2APIC_ID) {
        madt.add_structure(ProcessorLocalApic::new(id as u8, id as u8, EnabledStatus::Enabled));
    }
    for id in FIRST_X2APIC_ID..vcpus {
        madt.add_structure(x2apic::ProcessorLocalX2Apic::new(id));
    }
    madt.add_structure(IoApic::new(0, layout::IOAPIC.0 as u32, 0));
    madt
}

fn mcfg() -> MCFG {
    let mut mcfg = MCFG::new(OEM, OEM_TABLE, OEM_REVISION);
    mcfg.add_ecam(layout::ECAM.0, 0, 0, 0);
    mcfg
}
