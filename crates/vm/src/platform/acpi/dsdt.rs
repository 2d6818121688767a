// SPDX-License-Identifier: MIT OR Apache-2.0
//! The devices that a kernel cannot find by itself, in AML.
//!
//! There is no `_PRT`: PCI devices interrupt by message only. There is no interrupt for the CMOS clock: nothing here
//! wakes by alarm.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use acpi_tables::Aml;
use acpi_tables::aml::{
    AddressSpace, AddressSpaceCacheable, Device, EISAName, IO, Interrupt, Memory32Fixed, Name, Package, Path,
    ResourceTemplate, Scope,
};
use acpi_tables::sdt::Sdt;

use super::oem::{OEM, OEM_REVISION, OEM_TABLE};
use super::{events, hot_plug, lines, power_button};
use crate::platform::layout::{self, port};

const HEADER_BYTES: u32 = 36;
/// From revision 2 on AML integers have 64 bits.
const REVISION: u8 = 2;
/// Present, enabled, shown, working (`_STA`, ACPI 6.5, section 6.3.7).
const STATUS_PRESENT: u8 = 0x0f;
/// SLP_TYP of soft off: the value that the guest writes to the sleep control register, shifted (section 4.8.3.7).
const SLEEP_TYPE_SOFT_OFF: u8 = 5;

/// The table for a machine with this 64-bit window for PCI functions, which may be empty.
pub(super) fn dsdt(pci_high: Range<u64>) -> Sdt {
    let mut aml = Vec::new();
    let off = Package::new(vec![&SLEEP_TYPE_SOFT_OFF, &0_u8, &0_u8, &0_u8]);
    Name::new("_S5_".into(), &off).to_aml_bytes(&mut aml);
    add_devices(&pci_high, &mut aml);
    let mut table = Sdt::new(*b"DSDT", HEADER_BYTES, REVISION, OEM, OEM_TABLE, OEM_REVISION);
    table.append_slice(&aml);
    table
}

fn add_devices(pci_high: &Range<u64>, aml: &mut Vec<u8>) {
    let mut devices = Vec::new();
    add_pci(pci_high, &mut devices);
    power_button::button().to_aml_bytes(&mut devices);
    events::device().to_aml_bytes(&mut devices);
    add_motherboard(&mut devices);
    add_com1(&mut devices);
    add_clock(&mut devices);
    add_pvpanic(&mut devices);
    aml.extend_from_slice(&Scope::raw("\\_SB_".into(), devices));
}

/// The PCI Express root with the windows its devices may use.
fn add_pci(high: &Range<u64>, aml: &mut Vec<u8>) {
    let buses = AddressSpace::new_bus_number(0_u16, 0);
    let ports = fixed_io(port::PCI_ADDRESS, 8);
    let io = AddressSpace::new_io(port::PCI_IO, u16::MAX, None);
    let first = layout::PCI_MMIO.0 as u32;
    let last = (layout::PCI_MMIO.0 + layout::PCI_MMIO_BYTES - 1) as u32;
    let memory = AddressSpace::new_memory(AddressSpaceCacheable::NotCacheable, true, first, last, None);
    let end = high.end.saturating_sub(1);
    let high_memory = AddressSpace::new_memory(AddressSpaceCacheable::NotCacheable, true, high.start, end, None);
    let mut all: Vec<&dyn Aml> = vec![&buses, &ports, &io, &memory];
    if !high.is_empty() {
        all.push(&high_memory);
    }
    let resources = ResourceTemplate::new(all);
    let id = Name::new("_HID".into(), &EISAName::new("PNP0A08"));
    let compatible = Name::new("_CID".into(), &EISAName::new("PNP0A03"));
    let [segment, bus, unique] = ["_SEG", "_BBN", "_UID"].map(|name| Name::new(name.into(), &0_u8));
    let resources = Name::new("_CRS".into(), &resources);
    let (lines, hot_plug) = (lines::routing(), hot_plug::of_root());
    device("PCI0", vec![&id, &compatible, &segment, &bus, &unique, &resources, &lines, &hot_plug], aml);
}

/// Adds the ranges that no device may be given: the enhanced configuration space, the registers for sleep,
/// hot-plug and the power button.
fn add_motherboard(aml: &mut Vec<u8>) {
    let ecam = Memory32Fixed::new(true, layout::ECAM.0 as u32, layout::ECAM_BYTES as u32);
    let sleep = fixed_io(port::SLEEP_CONTROL, 2);
    let hot_plug = fixed_io(port::HOT_PLUG, port::HOT_PLUG_PORTS);
    let button = fixed_io(port::POWER_BUTTON, 1);
    let resources = ResourceTemplate::new(vec![&ecam, &sleep, &hot_plug, &button]);
    plain_device("MBRD", &EISAName::new("PNP0C02"), &resources, aml);
}

fn add_com1(aml: &mut Vec<u8>) {
    let ports = fixed_io(port::COM1, 8);
    // A consumer's; edge-triggered, active high, not shared.
    let interrupt = Interrupt::new(true, true, false, false, layout::COM1_GSI.into());
    let resources = ResourceTemplate::new(vec![&ports, &interrupt]);
    plain_device("COM1", &EISAName::new("PNP0501"), &resources, aml);
}

fn add_clock(aml: &mut Vec<u8>) {
    let ports = fixed_io(port::CMOS, 2);
    plain_device("RTC_", &EISAName::new("PNP0B00"), &ResourceTemplate::new(vec![&ports]), aml);
}

fn add_pvpanic(aml: &mut Vec<u8>) {
    let ports = fixed_io(port::PVPANIC, 1);
    plain_device("PEVT", &"QEMU0001", &ResourceTemplate::new(vec![&ports]), aml);
}

fn fixed_io(first: u16, ports: u8) -> IO {
    IO::new(first, first, 1, ports)
}

fn plain_device(name: &str, id: &dyn Aml, resources: &dyn Aml, aml: &mut Vec<u8>) {
    let id = Name::new("_HID".into(), id);
    let unique = Name::new("_UID".into(), &0_u8);
    let status = Name::new("_STA".into(), &STATUS_PRESENT);
    let resources = Name::new("_CRS".into(), resources);
    device(name, vec![&id, &unique, &status, &resources], aml);
}

fn device(name: &str, children: Vec<&dyn Aml>, aml: &mut Vec<u8>) {
    Device::new(Path::new(name), children).to_aml_bytes(aml);
}
