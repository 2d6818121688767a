// SPDX-License-Identifier: MIT OR Apache-2.0
//! The INTx lines of PCI functions in AML (ACPI 6.5, section 6.2.13): each device's pin INTA leads to an input of the
//! I/O APIC, level-triggered and active low, as PCI's are.

use alloc::vec::Vec;

use acpi_tables::Aml;
use acpi_tables::aml::{Name, Package};

use super::hot_plug::Made;
use crate::devices::hot_plug::DEVICES;
use crate::platform::layout::line_of;

/// The object that states them.
pub(super) const ROUTING: &str = "_PRT";
/// Any function of a device.
const ANY_FUNCTION: u32 = 0xffff;
const INTA: u8 = 0;
/// The source is no link device: its index is a global system interrupt.
const NO_SOURCE: u8 = 0;

/// What the PCI root has of it.
pub(super) fn routing() -> Made {
    let addresses: Vec<(u32, u8)> =
        DEVICES.map(|device| (u32::from(device) << 16 | ANY_FUNCTION, line_of(device))).collect();
    let entry = |(address, pin)| Package::new(alloc::vec![address as &dyn Aml, &INTA, &NO_SOURCE, pin as &dyn Aml]);
    let entries: Vec<Package<'_>> = addresses.iter().map(|(address, pin)| entry((address, pin))).collect();
    let all = Package::new(entries.iter().map(|entry| entry as &dyn Aml).collect());
    let mut aml = Vec::new();
    Name::new(ROUTING.into(), &all).to_aml_bytes(&mut aml);
    Made(aml)
}
