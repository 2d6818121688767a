// SPDX-License-Identifier: MIT OR Apache-2.0
//! The redirection entry (82093AA data sheet, section 3.2.4).

use bitfield_struct::bitfield;

use super::{DeliveryMode, Destination, InterruptMessage};

/// A physical destination of all ones, of the eight bits this device has.
const EVERY_APIC: u8 = 0xff;

/// Redirection entry of one pin.
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct RedirectionEntry {
    /// The vector to deliver.
    pub vector: u8,
    /// Delivery mode, in the encoding of [`DeliveryMode`].
    #[bits(3)]
    pub delivery_mode: u8,
    /// The destination is logical.
    pub is_logical: bool,
    /// A message is on its way: never seen, messages take no time.
    pub delivery_pending: bool,
    /// The line is active low: stored only.
    pub is_active_low: bool,
    /// A level-triggered interrupt has been delivered and not ended.
    pub remote_irr: bool,
    /// Level-triggered.
    pub is_level: bool,
    /// No messages.
    pub masked: bool,
    #[bits(39)]
    __: u64,
    /// The receivers.
    pub destination: u8,
}

impl RedirectionEntry {
    /// After reset.
    pub const RESET: Self = Self::new().with_masked(true);

    /// Bits that a guest can write.
    const WRITABLE: u64 = Self::from_bits(u64::MAX).with_delivery_pending(false).with_remote_irr(false).into_bits()
        & 0xff00_0000_0001_ffff;

    /// All bits that can ever be set.
    pub const DEFINED: u64 = Self::WRITABLE | Self::new().with_remote_irr(true).into_bits();

    /// Returns whether an interrupt of this pin is level-triggered and so lasts until its end. Only messages with a
    /// vector that is ended can be; the others are edges whatever the trigger mode states.
    pub fn waits_for_end(self) -> bool {
        let mode = DeliveryMode::from_bits(self.delivery_mode());
        self.is_level() && matches!(mode, Some(DeliveryMode::Fixed | DeliveryMode::LowestPriority))
    }

    /// Returns whether this pin sends a message as soon as its line is asserted, for as long as it is.
    pub fn is_ready(self) -> bool {
        self.waits_for_end() && !self.masked() && !self.remote_irr()
    }

    /// The entry after a guest has written one half of it. An edge-triggered pin waits for no end.
    pub fn written(self, is_high_half: bool, value: u32) -> Self {
        let (half, shift) = if is_high_half { (0xffff_ffff << 32, 32) } else { (0xffff_ffff, 0) };
        let mask = half & Self::WRITABLE;
        let written = Self::from_bits(self.into_bits() & !mask | u64::from(value) << shift & mask);
        written.with_remote_irr(written.remote_irr() && written.waits_for_end())
    }

    /// The message this pin sends; `None` for the reserved delivery mode.
    pub fn message(self) -> Option<InterruptMessage> {
        let id = self.destination();
        let destination = match self.is_logical() {
            true => Destination::Logical(u32::from(id)),
            false if id == EVERY_APIC => Destination::Physical(u32::MAX),
            false => Destination::Physical(u32::from(id)),
        };
        let mode = DeliveryMode::from_bits(self.delivery_mode())?;
        Some(InterruptMessage { destination, mode, vector: self.vector(), is_level: self.waits_for_end() })
    }
}
