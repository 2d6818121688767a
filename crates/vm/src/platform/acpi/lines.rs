// SPDX-License-Identifier: MIT OR Apache-2.0
//! The INTx lines of PCI functions in AML (ACPI 6.5, section 6.2.13): each device's pin INTA leads to an input of the
//! I/O APIC, level-triggered and active low, as PCI's are.

use alloc::vec::Vec;

use super::made::Made;
use crate::devices::hot_plug::DEVICES;
use crate::platform::layout::line_of;

/// The object that states them.
pub(super) const ROUTING: &str = "_PRT";
/// Encodings (section 20.2.3): a name, a package, a byte, a doubleword; the integer 0.
const NAME: u8 = 0x08;
const PACKAGE: u8 = 0x12;
const BYTE: u8 = 0x0a;
const DWORD: u8 = 0x0c;
const ZERO: u8 = 0;
const ENTRY_BYTES: usize = 12;
const COUNT: u8 = DEVICES.end - DEVICES.start;
/// Bytes of the package, its length's two and its count among them.
const BYTES: usize = 3 + COUNT as usize * ENTRY_BYTES;

/// The objects that the PCI root has of it. By hand: as objects of a library it would take more of the image than of
/// the table.
pub(super) fn routing() -> Made {
    let mut aml = Vec::with_capacity(BYTES + 6);
    aml.push(NAME);
    aml.extend_from_slice(ROUTING.as_bytes());
    // A length of two bytes: how many follow the first, then four bits and eight.
    aml.extend_from_slice(&[PACKAGE, 1 << 6 | (BYTES & 0xf) as u8, (BYTES >> 4) as u8, COUNT]);
    for device in DEVICES {
        // Address (any function of the device), pin INTA, no link device, the global system interrupt.
        let length = ENTRY_BYTES as u8 - 1;
        let address = [DWORD, 0xff, 0xff, device, 0];
        aml.extend_from_slice(&[PACKAGE, length, 4]);
        aml.extend_from_slice(&address);
        aml.extend_from_slice(&[ZERO, ZERO, BYTE, line_of(device)]);
    }
    Made(aml)
}
