// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state of a function that all types of devices share: features, queues and vectors that the driver has set up.

use alloc::vec::Vec;

use ::virtio::{Addresses, Fault, Options, Queue, feature, status};

use crate::devices::outputs::{Outputs, Request};
use crate::devices::pci::{Function, Messages};

/// Features of queues and transport that every function offers.
pub(super) const COMMON_FEATURES: u64 =
    feature::INDIRECT_DESC | feature::EVENT_IDX | feature::VERSION_1 | feature::RING_RESET;
/// The event has no vector (section 4.1.5.1.3).
pub(super) const NO_VECTOR: u16 = 0xffff;
/// Interrupt status (section 4.1.4.5): a queue, or the configuration.
pub(super) const ISR_QUEUE: u8 = 1;
pub(super) const ISR_CONFIG: u8 = 2;

/// A queue as its driver sets it up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    /// The most descriptors.
    pub most: u16,
    /// The number of descriptors that the driver wants.
    pub size: u16,
    pub vector: u16,
    pub addresses: Addresses,
    /// The queue, once it is enabled.
    pub queue: Option<Queue>,
}

impl Slot {
    const fn new(most: u16) -> Self {
        let addresses = Addresses { descriptors: 0, driver: 0, device: 0 };
        Self { most, size: most, vector: NO_VECTOR, addresses, queue: None }
    }
}

/// The state of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Transport {
    pub kind: u32,
    pub offered: u64,
    /// The features that the driver has accepted.
    pub accepted: u64,
    pub device_feature_select: u32,
    pub driver_feature_select: u32,
    pub status: u8,
    pub isr: u8,
    pub generation: u8,
    pub config_vector: u16,
    pub queue_select: u16,
    pub slots: Vec<Slot>,
    /// A fault of this driver's has been reported.
    pub has_reported: bool,
}

impl Transport {
    pub fn new(kind: u32, features: u64, queue_sizes: &[u16]) -> Self {
        Self {
            kind,
            offered: COMMON_FEATURES | features,
            accepted: 0,
            device_feature_select: 0,
            driver_feature_select: 0,
            status: 0,
            isr: 0,
            generation: 0,
            config_vector: NO_VECTOR,
            queue_select: 0,
            slots: queue_sizes.iter().map(|most| Slot::new(*most)).collect(),
            has_reported: false,
        }
    }

    /// As after power-on. A driver that is at fault again and again is reported once.
    pub fn reset(&mut self) {
        (self.accepted, self.device_feature_select, self.driver_feature_select) = (0, 0, 0);
        (self.status, self.isr, self.generation) = (0, 0, 0);
        (self.config_vector, self.queue_select) = (NO_VECTOR, 0);
        self.slots.iter_mut().for_each(|slot| *slot = Slot::new(slot.most));
    }

    /// Vectors: one for each queue and one for the configuration.
    pub fn vectors(&self) -> u16 {
        self.slots.len() as u16 + 1
    }

    /// Returns whether the driver has set the device up, and neither has given the other up.
    #[inline]
    pub fn is_running(&self) -> bool {
        self.status & (status::DRIVER_OK | status::DEVICE_NEEDS_RESET | status::FAILED) == status::DRIVER_OK
    }

    /// A queue that the device may use.
    #[inline]
    pub fn queue(&mut self, number: u16) -> Option<&mut Queue> {
        if !self.is_running() {
            return None;
        }
        self.slots.get_mut(usize::from(number))?.queue.as_mut()
    }

    /// Enables the selected queue. Rings of features that are not negotiated yet have no format.
    pub fn enable_queue(&mut self) -> Result<(), Fault> {
        let options = Options::of(self.accepted);
        let is_negotiated = self.status & status::FEATURES_OK != 0;
        let Some(slot) = self.slots.get_mut(usize::from(self.queue_select)) else { return Ok(()) };
        if !is_negotiated || slot.queue.is_some() {
            return Ok(());
        }
        if slot.size > slot.most {
            return Err(Fault::QueueSize { size: slot.size });
        }
        slot.queue = Some(Queue::new(slot.addresses, slot.size, options)?);
        Ok(())
    }

    /// Resets the selected queue; its number if there is such a queue and the driver may.
    pub fn reset_queue(&mut self) -> Option<u16> {
        let is_negotiated = self.accepted & feature::RING_RESET != 0;
        let slot = self.slots.get_mut(usize::from(self.queue_select)).filter(|_| is_negotiated)?;
        *slot = Slot::new(slot.most);
        Some(self.queue_select)
    }

    /// The driver adds bits to the status. Features are accepted if they are offered and the driver is no legacy one.
    pub fn add_status(&mut self, value: u8) {
        let mut new = value & status::DRIVERS & !self.status;
        let is_good = self.accepted & !self.offered == 0 && self.accepted & feature::VERSION_1 != 0;
        if !is_good {
            new &= !status::FEATURES_OK;
        }
        if (self.status | new) & status::FEATURES_OK == 0 {
            new &= !status::DRIVER_OK;
        }
        self.status |= new;
    }

    /// The driver has violated the specification: the device needs a reset, and reports that (section 2.1.2).
    #[cold]
    pub fn fail(&mut self, fault: Fault, function: &mut Function, outputs: &mut Outputs) {
        let was_running = self.is_running();
        self.status |= status::DEVICE_NEEDS_RESET;
        if was_running {
            self.interrupt(self.config_vector, ISR_CONFIG, function, outputs);
        }
        if !core::mem::replace(&mut self.has_reported, true) {
            outputs.request(Request::DriverFault(self.kind, fault));
        }
    }

    /// Interrupts the driver by a vector, or sets its interrupt status where it uses none.
    pub fn interrupt(&mut self, vector: u16, isr: u8, function: &mut Function, outputs: &mut Outputs) {
        if vector != NO_VECTOR && function.raise(vector, outputs) {
            return;
        }
        if function.messages() == Messages::Off {
            self.isr |= isr;
        }
    }
}
