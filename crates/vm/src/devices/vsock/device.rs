// SPDX-License-Identifier: MIT OR Apache-2.0
//! The device: what its driver finds.

use alloc::boxed::Box;
use alloc::vec::Vec;

use ::virtio::{Chain, Fault};
use arrayvec::ArrayVec;
use handover::Full;
use handover::state::DeviceKind;
use vsock::{Connections, Header};

use crate::devices::StateError;
use crate::devices::virtio::{Io, VirtioDevice};

/// The queues (section 5.10.2).
pub(super) const RECEIVE: u16 = 0;
pub(super) const TRANSMIT: u16 = 1;
const QUEUE_SIZES: &[u16] = &[128, 128, 8];
/// The configuration (section 5.10.4): the guest's identifier, of which the upper half is zero.
const CONFIG_BYTES: usize = 8;
/// Stream sockets (section 5.10.3).
const FEATURE_STREAM: u64 = 1;
/// Refused packets for which the driver is still to get RST. A driver that gives no buffers for these sends no more.
pub(super) const REFUSED: usize = 32;

/// The device of a guest.
#[derive(Debug)]
pub struct Vsock {
    pub(super) connections: Connections,
    /// Guests to which this one may open connections.
    pub(super) peers: Vec<u32>,
    /// The chain of a packet that is taken and not given back. It is `None` while no CPU works with the device.
    pub(super) sending: Option<u16>,
    /// Bytes of the next packet's data that its receiver has.
    pub(super) passed: u32,
    /// The RST packets for refused ones.
    pub(super) refused: ArrayVec<Header, REFUSED>,
    /// The driver has reset the device, and the other ends are to be notified of it.
    pub(super) was_reset: bool,
    /// A buffer for packets that the driver receives.
    pub(super) buffer: Box<Chain>,
}

impl Vsock {
    /// The device of the guest with this identifier, that may open connections to these guests.
    pub fn new(cid: u32, peers: Vec<u32>) -> Self {
        Self {
            connections: Connections::new(cid),
            peers,
            sending: None,
            passed: 0,
            refused: ArrayVec::new(),
            was_reset: false,
            buffer: Box::default(),
        }
    }

    /// The guest's identifier.
    pub fn cid(&self) -> u32 {
        self.connections.cid()
    }

    /// Returns whether the driver has reset the device: the other ends of its connections are to be
    /// [reset](Self::reset_all_of) before it sends again.
    pub fn take_was_reset(&mut self) -> bool {
        core::mem::take(&mut self.was_reset)
    }

    fn discard_packet(&mut self) {
        (self.sending, self.passed) = (None, 0);
    }
}

impl VirtioDevice for Vsock {
    const KIND: DeviceKind = DeviceKind::VirtioVsock;
    const ID: u16 = 19;
    /// Simple communication controller, other.
    const CLASS: u32 = 0x07_8000;

    fn features(&self) -> u64 {
        FEATURE_STREAM
    }

    fn queue_sizes(&self) -> &[u16] {
        QUEUE_SIZES
    }

    fn config_bytes(&self) -> u32 {
        CONFIG_BYTES as u32
    }

    fn read_config(&self, at: u32, into: &mut [u8]) {
        let config = u64::from(self.cid()).to_le_bytes();
        let there = config.get(at as usize..).unwrap_or_default();
        into.iter_mut().zip(there).for_each(|(into, byte)| *into = *byte);
    }

    fn notify(&mut self, queue: u16, io: &mut Io<'_>) -> Result<(), Fault> {
        // A driver that has reset its device may send nothing: the host is to learn of it nonetheless.
        if queue == TRANSMIT || self.was_reset {
            io.send_soon();
        }
        if queue == RECEIVE {
            // Buffers are taken when there is a packet for them.
            io.disable_notifications(RECEIVE)?;
            self.flush(io)?;
        }
        // Buffers for events wait.
        Ok(())
    }

    fn reset_queue(&mut self, queue: u16) {
        if queue == TRANSMIT {
            self.discard_packet();
        }
    }

    fn reset(&mut self) {
        self.discard_packet();
        self.was_reset |= !self.connections.all().is_empty();
        self.connections.clear();
        self.refused.clear();
    }

    fn state_bytes(&self) -> usize {
        Self::STATE_BYTES
    }

    fn save(&self, into: &mut [u8]) -> Result<usize, Full> {
        self.write_state(into)
    }

    fn restore(&mut self, _: u32, from: &[u8]) -> Result<(), StateError> {
        self.read_state(from)
    }
}
