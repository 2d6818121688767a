// SPDX-License-Identifier: MIT OR Apache-2.0
//! The driver's side of a device, as the device reaches it: queues, memory, interrupts.

use ::virtio::{Chain, Fault};

use super::transport::{ISR_CONFIG, ISR_QUEUE, Transport};
use crate::devices::outputs::{Outputs, Request};
use crate::devices::pci::Function;
use crate::memory::GuestMemory;

/// The queues and memory that a device works with. Its methods do nothing with a queue that the driver has not enabled,
/// or while the device is not to work.
pub struct Io<'a> {
    pub(super) transport: &'a mut Transport,
    pub(super) function: &'a mut Function,
    pub(super) outputs: &'a mut Outputs,
    /// The driver's memory.
    pub memory: &'a dyn GuestMemory,
}

impl Io<'_> {
    /// The features that the driver has accepted.
    pub fn features(&self) -> u64 {
        self.transport.accepted
    }

    /// Returns whether the device may use a queue.
    pub fn is_enabled(&mut self, queue: u16) -> bool {
        self.transport.queue(queue).is_some()
    }

    /// Takes the next chain of a queue; false if there is none.
    ///
    /// # Errors
    /// A [`Fault`], which the device passes on to its caller.
    pub fn take(&mut self, queue: u16, chain: &mut Chain) -> Result<bool, Fault> {
        let memory = self.memory;
        self.transport.queue(queue).map_or(Ok(false), |queue| queue.take(memory, chain))
    }

    /// Returns whether less than a quarter of a queue's descriptors begin chains that are available and not taken.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub fn is_short(&mut self, queue: u16) -> Result<bool, Fault> {
        let memory = self.memory;
        self.transport.queue(queue).map_or(Ok(true), |queue| Ok(queue.waiting(memory)? < queue.size() / 4))
    }

    /// Follows a chain again that was taken and is not completed; false if the queue is not enabled any more.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub fn follow(&mut self, queue: u16, head: u16, chain: &mut Chain) -> Result<bool, Fault> {
        let memory = self.memory;
        self.transport.queue(queue).map_or(Ok(false), |queue| queue.follow(memory, head, chain).map(|()| true))
    }

    /// Puts the chain that was taken last back: it is taken again.
    pub fn put_back(&mut self, queue: u16) {
        if let Some(queue) = self.transport.queue(queue) {
            queue.put_back();
        }
    }

    /// Completes a chain, to which so many bytes have been written. The driver sees it when it is published.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub fn complete(&mut self, queue: u16, head: u16, written: u32) -> Result<(), Fault> {
        let memory = self.memory;
        self.transport.queue(queue).map_or(Ok(()), |queue| queue.complete(memory, head, written))
    }

    /// Shows the driver the completed chains, and interrupts it if it wants that. A device publishes before it returns.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub fn publish(&mut self, queue: u16) -> Result<(), Fault> {
        let memory = self.memory;
        let is_wanted = self.transport.queue(queue).map_or(Ok(false), |queue| queue.publish(memory))?;
        if let Some(slot) = self.transport.slots.get(usize::from(queue)).filter(|_| is_wanted) {
            self.transport.interrupt(slot.vector, ISR_QUEUE, self.function, self.outputs);
        }
        Ok(())
    }

    /// Asks for a notification of the queue's next chain; true if there is one already, with which the device goes on.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub fn enable_notifications(&mut self, queue: u16) -> Result<bool, Fault> {
        let memory = self.memory;
        self.transport.queue(queue).map_or(Ok(false), |queue| queue.enable_notifications(memory))
    }

    /// Asks for no notifications of a queue: the device polls it.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub fn disable_notifications(&mut self, queue: u16) -> Result<(), Fault> {
        let memory = self.memory;
        self.transport.queue(queue).map_or(Ok(()), |queue| queue.disable_notifications(memory))
    }

    /// Asks for a [`poll`](super::VirtioDevice::poll) soon: there is more to do than one notification may cost.
    pub fn poll_soon(&mut self) {
        self.outputs.request(Request::Poll);
    }

    /// Asks the host to forward the frames that the driver sends, in the time of the vCPU that has notified the device.
    pub fn send_soon(&mut self) {
        self.outputs.request(Request::Send);
    }

    /// The device's configuration has changed: informs the driver of it (section 2.5).
    pub fn change_config(&mut self) {
        self.transport.generation = self.transport.generation.wrapping_add(1);
        if self.transport.is_running() {
            self.transport.interrupt(self.transport.config_vector, ISR_CONFIG, self.function, self.outputs);
        }
    }
}
