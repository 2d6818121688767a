// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages of MSI and MSI-X: a write to an address of the local APICs (Intel SDM vol. 3, section 11.11; AMD APM vol.
//! 2, section 16.11).

use crate::devices::InterruptMessage;
use crate::devices::ioapic::RedirectionEntry;

/// Upper bits of a message's address: no other write interrupts.
const APIC_ADDRESS: u64 = 0xfee0_0000;
const APIC_ADDRESS_MASK: u64 = !0xf_ffff;

/// The message-signalled interrupts that the guest has enabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Messages {
    /// Neither.
    Off,
    /// MSI.
    Msi {
        /// Vectors that it allows: a power of two up to 32.
        vectors: u32,
    },
    /// MSI-X.
    MsiX,
}

/// The interrupt that a device sends by writing `data` to `address`; `None` if that is no interrupt.
pub(super) fn decode(address: u64, data: u32) -> Option<InterruptMessage> {
    if address & APIC_ADDRESS_MASK != APIC_ADDRESS {
        return None;
    }
    RedirectionEntry::new()
        .with_vector(data as u8)
        .with_delivery_mode((data >> 8 & 0b111) as u8)
        .with_is_level(data >> 15 & 1 != 0)
        .with_is_logical(address >> 2 & 1 != 0)
        .with_destination((address >> 12) as u8)
        .message()
}
