// SPDX-License-Identifier: MIT OR Apache-2.0
//! Message signalled interrupts of a function that is a guest's (PCI Local Bus 3.0, section 6.8): the registers that
//! the host programs. The entries of an MSI-X table are in the function's memory, and are the caller's.

use crate::capability::CONFIG_BYTES;
use crate::{Bdf, ConfigWrite};

/// Message control, behind the capability's number and link.
const CONTROL: u16 = 2;
const MSI_ENABLED: u16 = 1 << 0;
/// Vectors in use, as a power of two, from this bit on.
const MSI_VECTORS_SHIFT: u32 = 4;
const MSI_VECTORS: u16 = 0b111 << MSI_VECTORS_SHIFT;
const MSI_HAS_64_BITS: u16 = 1 << 7;
const MSI_HAS_MASKS: u16 = 1 << 8;
const MSI_ADDRESS: u16 = 4;
const MSI_UPPER_ADDRESS: u16 = 8;
const MSIX_ENABLED: u16 = 1 << 15;
const MSIX_ALL_MASKED: u16 = 1 << 14;

/// Enables MSI by the capability at `register`, with this address and data and `vectors` vectors: a power of two, up
/// to 32. Vectors that can be masked are not. A function with an address of 32 bits gets the lower half. One with
/// registers that would lie past the end of configuration space stays disabled.
pub fn enable_msi(config: &mut dyn ConfigWrite, place: Bdf, register: u16, (address, data): (u64, u16), vectors: u32) {
    let control = control(config, place, register);
    let (has_64_bits, has_masks) = (control & MSI_HAS_64_BITS != 0, control & MSI_HAS_MASKS != 0);
    let data_at = register + if has_64_bits { 12 } else { 8 };
    if data_at + if has_masks { 8 } else { 2 } > CONFIG_BYTES {
        return;
    }
    config.write32(place, register + MSI_ADDRESS, address as u32);
    if has_64_bits {
        config.write32(place, register + MSI_UPPER_ADDRESS, (address >> 32) as u32);
    }
    config.write16(place, data_at, data);
    if has_masks {
        config.write32(place, data_at + 4, 0);
    }
    let used = (vectors.trailing_zeros() as u16) << MSI_VECTORS_SHIFT & MSI_VECTORS;
    config.write16(place, register + CONTROL, control & !MSI_VECTORS | used | MSI_ENABLED);
}

/// Enables MSI-X by the capability at `register`. `fill` writes the table: it can be written for certain while MSI-X
/// is enabled, and nothing is sent before it returns.
pub fn enable_msix(config: &mut dyn ConfigWrite, place: Bdf, register: u16, fill: impl FnOnce()) {
    let control = control(config, place, register) | MSIX_ENABLED;
    config.write16(place, register + CONTROL, control | MSIX_ALL_MASKED);
    fill();
    config.write16(place, register + CONTROL, control & !MSIX_ALL_MASKED);
}

/// Disables MSI and MSI-X by the capabilities at these registers.
pub fn disable(config: &mut dyn ConfigWrite, place: Bdf, msi: Option<u16>, msix: Option<u16>) {
    for (register, bit) in [(msi, MSI_ENABLED), (msix, MSIX_ENABLED)] {
        let Some(register) = register else { continue };
        let control = control(config, place, register);
        // A function that has vanished reads as ones.
        if control & bit != 0 && control != u16::MAX {
            config.write16(place, register + CONTROL, control & !bit);
        }
    }
}

fn control(config: &mut dyn ConfigWrite, place: Bdf, register: u16) -> u16 {
    (config.read(place, register) >> 16) as u16
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
