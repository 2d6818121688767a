// SPDX-License-Identifier: MIT OR Apache-2.0
//! The device: what its driver finds, and the frames that are given back to it.

use alloc::boxed::Box;

use ::virtio::{Chain, Fault};
use handover::Full;
use handover::state::{self, DeviceKind};
use switch::Mac;
use zerocopy::FromBytes as _;

use super::flows::Flows;
use super::pairs::{PAIRS_MOST, Pairs, Role, transmit};
use super::{control, feature};
use crate::devices::virtio::{Io, VirtioDevice};
use crate::devices::{StateError, piece};

/// The configuration (section 5.1.4): MAC address, status, pairs of queues, MTU.
const CONFIG_BYTES: usize = 12;
const LINK_UP: u16 = 1;

/// The device of a guest on a network.
#[derive(Debug)]
pub struct Net {
    mac: Mac,
    mtu: u16,
    pub(super) pairs: Pairs,
    pub(super) flows: Flows,
    /// For each pair the chain of a frame that is taken and not given back. All are `None` while no CPU forwards.
    pub(super) sending: [Option<u16>; PAIRS_MOST],
    /// The buffers that a frame is being received in.
    pub(super) buffers: Box<Chain>,
}

impl Net {
    /// A device with this address, whose driver is shown this MTU, and may use so many pairs of queues:
    /// [`PAIRS_MOST`] at most.
    pub fn new(mac: Mac, mtu: u16, pairs: u16) -> Self {
        let (pairs, flows) = (Pairs::new(pairs), Flows::new());
        Self { mac, mtu, pairs, flows, sending: [None; PAIRS_MOST], buffers: Box::default() }
    }

    /// The pairs whose frames are to be sent, a bit for each.
    #[inline]
    pub fn waiting(&self) -> u16 {
        self.pairs.waiting()
    }

    /// Asks the driver not to notify the device of a pair's frames: they are taken until there are none.
    ///
    /// # Errors
    /// The driver's [`Fault`].
    pub fn begin_sending(&mut self, pair: usize, io: &mut Io<'_>) -> Result<(), Fault> {
        self.pairs.set_waiting(pair, false);
        io.disable_notifications(transmit(pair))
    }

    /// Gives all frames of a pair back that were taken. With `asks_again` it is to notify the
    /// device of the next one; true if there is one already.
    ///
    /// # Errors
    /// The driver's [`Fault`].
    pub fn end_sending(&mut self, pair: usize, asks_again: bool, io: &mut Io<'_>) -> Result<bool, Fault> {
        self.give_back(pair, io)?;
        io.publish(transmit(pair))?;
        if asks_again {
            return io.enable_notifications(transmit(pair));
        }
        self.pairs.set_waiting(pair, true);
        Ok(false)
    }

    /// The frame that was taken is sent. If its driver has reset the device since, there is nothing to give back.
    pub(super) fn give_back(&mut self, pair: usize, io: &mut Io<'_>) -> Result<(), Fault> {
        match self.sending.get_mut(pair).and_then(Option::take) {
            Some(head) => io.complete(transmit(pair), head, 0),
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
        feature::OFFERED | self.pairs.features()
    }

    fn queue_sizes(&self) -> &[u16] {
        self.pairs.queue_sizes()
    }

    fn config_bytes(&self) -> u32 {
        CONFIG_BYTES as u32
    }

    fn read_config(&self, at: u32, into: &mut [u8]) {
        let mut config = [0; CONFIG_BYTES];
        config[..6].copy_from_slice(&self.mac.0);
        config[6..8].copy_from_slice(&LINK_UP.to_le_bytes());
        config[8..10].copy_from_slice(&(self.pairs.most() as u16).to_le_bytes());
        config[10..].copy_from_slice(&self.mtu.to_le_bytes());
        let there = config.get(at as usize..).unwrap_or_default();
        into.iter_mut().zip(there).for_each(|(into, byte)| *into = *byte);
    }

    fn notify(&mut self, queue: u16, io: &mut Io<'_>) -> Result<(), Fault> {
        match self.pairs.role(queue, io.features()) {
            Some(Role::Transmit(pair)) => {
                self.pairs.set_waiting(pair, true);
                io.send_soon();
            }
            // Buffers are taken when there is a frame for them.
            Some(Role::Receive) => io.disable_notifications(queue)?,
            Some(Role::Control) => control::obey(&mut self.pairs, queue, &mut self.buffers, io)?,
            None => {}
        }
        Ok(())
    }

    fn reset_queue(&mut self, queue: u16) {
        if let Some(sending) = self.sending.get_mut(usize::from(queue) / 2).filter(|_| !queue.is_multiple_of(2)) {
            *sending = None;
        }
    }

    fn reset(&mut self) {
        self.sending = [None; PAIRS_MOST];
        self.pairs.reset();
        self.flows = Flows::new();
    }

    fn state_bytes(&self) -> usize {
        if self.pairs.most() > 1 { size_of::<state::VirtioNet>() } else { 0 }
    }

    fn save(&self, into: &mut [u8]) -> Result<usize, Full> {
        if self.state_bytes() == 0 {
            return Ok(0);
        }
        piece::save(&state::VirtioNet { pairs: (self.pairs.used() as u16).into(), zero: [0; 6] }, into)
    }

    fn restore(&mut self, _: u32, from: &[u8]) -> Result<(), StateError> {
        let bad = |reason| Err(StateError { field: "virtio.net.pairs", reason });
        let mut pairs = Pairs::new(self.pairs.most() as u16);
        if from.len() != self.state_bytes() {
            return bad("its state is cut off");
        }
        if let Ok(saved) = state::VirtioNet::read_from_bytes(from)
            && !pairs.set_used(saved.pairs.get())
        {
            return bad("not as many as this device has");
        }
        pairs.all_wait();
        self.pairs = pairs;
        Ok(())
    }
}
