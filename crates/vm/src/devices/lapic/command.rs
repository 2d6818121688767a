// SPDX-License-Identifier: MIT OR Apache-2.0
//! The interrupt command register: sending to others (Intel SDM vol. 3, sections 11.6.1 and 11.12.9).

use super::registers::{FIRST_LEGAL_VECTOR, InterruptCommand, error, shorthand};
use super::{Action, Lapic};
use crate::devices::{DeliveryMode, Destination, InterruptMessage};

/// A physical destination of all ones in xAPIC mode.
const EVERY_XAPIC: u32 = 0xff;

impl Lapic {
    /// Sends what the interrupt command register states. An ordinary interrupt to oneself is taken at once; the rest
    /// goes the way of every message.
    pub(super) fn send(&mut self) -> Action {
        let command = InterruptCommand::from_bits(self.state.interrupt_command);
        let Some(mode) = sendable_mode(command) else { return Action::None };
        let (vector, is_vectored) =
            (command.vector(), matches!(mode, DeliveryMode::Fixed | DeliveryMode::LowestPriority));
        if is_vectored && vector < FIRST_LEGAL_VECTOR {
            self.record_error(error::SEND_ILLEGAL_VECTOR);
            return Action::None;
        }
        let destination = self.command_destination(command);
        if destination == Destination::Itself && mode == DeliveryMode::Fixed {
            return self.send_to_self(vector);
        }
        // Interrupts between CPUs are edges, whatever the command states of triggers.
        Action::Send(InterruptMessage { destination, mode, vector, is_level: false })
    }

    /// An ordinary interrupt to oneself.
    #[inline]
    pub(super) fn send_to_self(&mut self, vector: u8) -> Action {
        if vector < FIRST_LEGAL_VECTOR {
            self.record_error(error::SEND_ILLEGAL_VECTOR);
            return Action::None;
        }
        // Requested or, where software has disabled the APIC, lost: either way no other part need be notified.
        let _ = self.accept_vector(vector, false);
        Action::None
    }

    fn command_destination(&self, command: InterruptCommand) -> Destination {
        match command.shorthand() {
            shorthand::ITSELF => return Destination::Itself,
            shorthand::ALL => return Destination::All,
            shorthand::ALL_BUT_SELF => return Destination::AllButSelf,
            _ => {}
        }
        let raw = command.destination();
        let destination = if self.is_x2apic() { raw } else { raw >> 24 };
        match command.is_logical() {
            true => Destination::Logical(destination),
            false if destination == EVERY_XAPIC && !self.is_x2apic() => Destination::Physical(u32::MAX),
            false => Destination::Physical(destination),
        }
    }
}

/// The delivery mode of a command, if it is one that is sent: not reserved, not the de-assertion of INIT (which nothing
/// has listened to since the Pentium 4), and to a set with oneself in it only what a running CPU can take.
fn sendable_mode(command: InterruptCommand) -> Option<DeliveryMode> {
    let mode = DeliveryMode::from_bits(command.delivery_mode())?;
    let includes_self = matches!(command.shorthand(), shorthand::ITSELF | shorthand::ALL);
    let is_sent = match mode {
        DeliveryMode::Fixed | DeliveryMode::Nmi => true,
        DeliveryMode::Init => !includes_self && (command.is_assert() || !command.is_level()),
        DeliveryMode::LowestPriority | DeliveryMode::Startup => !includes_self,
        DeliveryMode::Smi | DeliveryMode::ExternalInterrupt => false,
    };
    is_sent.then_some(mode)
}
