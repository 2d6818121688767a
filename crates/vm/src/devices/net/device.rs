// SPDX-License-Identifier: MIT OR Apache-2.0
//! The device: what its driver finds, and the frames that are given back to it.

use alloc::boxed::Box;

use ::virtio::{Chain, Fault};
use handover::state::DeviceKind;
use switch::Mac;

use super::feature;
use crate::devices::virtio::{Io, VirtioDevice};

/// The queue of buffers for frames that the driver receives, and that of frames that it sends (section 5.1.2).
pub(super) const RECEIVE: u16 = 0;
pub(super) const TRANSMIT: u16 = 1;
const QUEUE_SIZE: u16 = 256;
/// The configuration (section 5.1.4): MAC address, status, pairs of queues, MTU.
const CONFIG_BYTES: usize = 12;
const LINK_UP: u16 = 1;

/// The device of a guest on a network.
#[derive(Debug)]
pub struct Net {
    mac: Mac,
    mtu: u16,
    /// The chain of a frame that is taken and not given back. It is `None` while no CPU forwards.
    pub(super) sending: Option<u16>,
    /// The buffers that a frame is being received in.
    pub(super) buffers: Box<Chain>,
}

impl Net {
    /// A device with this address, whose driver is shown this MTU.
    pub fn new(mac: Mac, mtu: u16) -> Self {
        Self { mac, mtu, sending: None, buffers: Box::default() }
    }

    /// Asks the driver not to notify the device of frames: they are taken until there are none.
    ///
    /// # Errors
    /// The driver's [`Fault`].
    pub fn begin_sending(&mut self, io: &mut Io<'_>) -> Result<(), Fault> {
        io.disable_notifications(TRANSMIT)
    }

    /// Gives all frames back that were taken. With `asks_again` it is to notify the
    /// device of the next one; true if there is one already.
    ///
    /// # Errors
    /// The driver's [`Fault`].
    pub fn end_sending(&mut self, asks_again: bool, io: &mut Io<'_>) -> Result<bool, Fault> {
        self.give_back(io)?;
        io.publish(TRANSMIT)?;
        if asks_again { io.enable_notifications(TRANSMIT) } else { Ok(false) }
    }

    /// The frame that was taken is sent. If its driver has reset the device since, there is nothing to give back.
    pub(super) fn give_back(&mut self, io: &mut Io<'_>) -> Result<(), Fault> {
        match self.sending.take() {
            Some(head) => io.complete(TRANSMIT, head, 0),
            None => Ok(()),
        }
    }
}

impl VirtioDevice for Net {
    const KIND: DeviceKind = DeviceKind::VirtioNet;
    const ID: u16 = 1;
    /// Network controller, Ethernet.
    const CLASS: u32 = 0x02_00_00;

    fn features(&self) -> u64 {
        feature::OFFERED
    }

    fn queue_sizes(&self) -> &[u16] {
        &[QUEUE_SIZE, QUEUE_SIZE]
    }

    fn config_bytes(&self) -> u32 {
        CONFIG_BYTES as u32
    }

    fn read_config(&self, at: u32, into: &mut [u8]) {
        let mut config = [0; CONFIG_BYTES];
        config[..6].copy_from_slice(&self.mac.0);
        config[6..8].copy_from_slice(&LINK_UP.to_le_bytes());
        config[8..10].copy_from_slice(&1u16.to_le_bytes());
        config[10..].copy_from_slice(&self.mtu.to_le_bytes());
        let there = config.get(at as usize..).unwrap_or_default();
        into.iter_mut().zip(there).for_each(|(into, byte)| *into = *byte);
    }

    fn notify(&mut self, queue: u16, io: &mut Io<'_>) -> Result<(), Fault> {
        match queue {
            TRANSMIT => io.send_soon(),
            // Buffers are taken when there is a frame for them.
            _ => io.disable_notifications(RECEIVE)?,
        }
        Ok(())
    }

    fn reset_queue(&mut self, queue: u16) {
        if queue == TRANSMIT {
            self.sending = None;
        }
    }

    fn reset(&mut self) {
        self.sending = None;
    }
}
