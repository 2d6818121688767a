// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interrupt messages on their way from a device or a local APIC to the local APICs that they are for.

use super::context::Initiator;
use super::mailbox::Mailbox;
use super::{Cpu, Host};
use crate::devices::lapic::{Acceptance, Action};
use crate::devices::{DeliveryMode, Destination, InterruptMessage};
use crate::memory::GuestMemory;

impl<M: GuestMemory, H: Host> Initiator<'_, M, H> {
    /// Carries out the action of a local APIC's register.
    #[inline]
    pub(super) fn act(&mut self, action: Action) {
        match action {
            Action::None => {}
            Action::Send(message) => self.send(&message),
            Action::TimerChanged => self.cpu.arm(self.host),
            Action::EndOfInterrupt(vector) => {
                if self.machine.bus.has_lines() {
                    self.reborrow().end_lines(vector);
                }
                let ioapic = self.machine.bus.ioapic();
                self.with_device(ioapic, &mut None, |ioapic, context| {
                    // There is room for a message of every pin.
                    ioapic.end_of_interrupt(vector, &mut |message| _ = context.outputs.send(message));
                });
            }
        }
    }

    /// Notifies functions of the end of their lines' interrupts before the I/O APIC: a line that is not asserted any
    /// more does not interrupt again.
    #[cold]
    fn end_lines(&mut self, vector: u8) {
        for device in self.machine.bus.lines_ended(vector) {
            self.with_device(&*device, &mut None, |device, context| device.end_line(context.outputs));
        }
    }

    /// Takes a message to every local APIC that it is for.
    #[inline]
    pub(super) fn send(&mut self, message: &InterruptMessage) {
        match message.destination {
            Destination::Physical(id) if (id as usize) < self.machine.mailboxes.len() => {
                self.send_to(id, message);
            }
            _ => self.reborrow().send_to_many(message),
        }
    }

    #[inline]
    fn send_to_many(&mut self, message: &InterruptMessage) {
        for id in 0..self.machine.mailboxes.len() as u32 {
            let is_taken = self.send_to(id, message);
            if is_taken && message.mode == DeliveryMode::LowestPriority {
                // One is enough; the first is as good as any, since priorities of running CPUs change meanwhile.
                break;
            }
        }
    }

    #[inline]
    fn send_to(&mut self, id: u32, message: &InterruptMessage) -> bool {
        let own = self.cpu.lapic.id();
        let Some(mailbox) = self.machine.mailboxes.get(id as usize) else { return false };
        if !mailbox.matches(id, message.destination, own) {
            return false;
        }
        if id == own {
            self.cpu.deliver(message, mailbox);
        } else if mailbox.post(message) {
            self.host.kick(id as usize);
        }
        true
    }
}

impl Cpu {
    /// Takes a message for this CPU, which the CPU itself causes. A message that changes more than its local APIC waits
    /// in its mailbox for the next entry.
    fn deliver(&mut self, message: &InterruptMessage, mailbox: &Mailbox) {
        match self.lapic.accept(message) {
            Acceptance::Nmi => self.nmi.request(),
            Acceptance::Init | Acceptance::Startup(_) => drop(mailbox.post(message)),
            Acceptance::Requested | Acceptance::Ignored => {}
        }
    }
}
