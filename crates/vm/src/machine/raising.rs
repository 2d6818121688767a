// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events of a guest's function that the host raises, from any CPU: it interrupts, was reset, or has vanished.

use spin::Mutex;

use super::Machine;
use crate::devices::device::Device;
use crate::devices::outputs::Outputs;
use crate::devices::{DeliveryMode, Destination, InterruptMessage};
use crate::memory::GuestMemory;

/// No vCPU's identifier: the host sends no message to itself.
const NO_SENDER: u32 = u32::MAX;

impl<M: GuestMemory> Machine<M> {
    /// Borrows a function, and sends the interrupt messages that come of it. `notify` is called for each vCPU that has
    /// to check its interrupts, with whether it has been notified since it last did. No vCPU of the machine is
    /// borrowed: any CPU may call this.
    pub fn with_function<D: Device>(
        &self,
        function: &Mutex<D>,
        notify: &mut dyn FnMut(usize, bool),
        access: impl FnOnce(&mut D, &mut Outputs),
    ) {
        let mut outputs = Outputs::new();
        let mut borrowed = function.lock();
        access(&mut borrowed, &mut outputs);
        if outputs.has_lines() {
            self.bus.apply_lines(&mut outputs);
        }
        drop(borrowed);
        loop {
            outputs.send_messages(|message| self.post(message, notify));
            if !outputs.take_has_more() {
                return;
            }
            function.lock().raise_pending(&mut outputs);
        }
    }

    /// Finds out again where PCI functions decode: one has vanished. No function is locked.
    pub fn place_functions(&self) {
        self.bus.place_functions();
    }

    /// Takes a message to every local APIC that it is for.
    fn post(&self, message: &InterruptMessage, notify: &mut dyn FnMut(usize, bool)) {
        if let Destination::Physical(id) = message.destination
            && (id as usize) < self.mailboxes.len()
        {
            self.post_to(id, message, notify);
            return;
        }
        for id in 0..self.mailboxes.len() as u32 {
            let is_taken = self.post_to(id, message, notify);
            if is_taken && message.mode == DeliveryMode::LowestPriority {
                return;
            }
        }
    }

    fn post_to(&self, id: u32, message: &InterruptMessage, notify: &mut dyn FnMut(usize, bool)) -> bool {
        let Some(mailbox) = self.mailboxes.get(id as usize) else { return false };
        let is_for_it = mailbox.matches(id, message.destination, NO_SENDER);
        if is_for_it {
            notify(id as usize, !mailbox.post(message));
        }
        is_for_it
    }
}
