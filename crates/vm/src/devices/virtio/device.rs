// SPDX-License-Identifier: MIT OR Apache-2.0
//! A type of virtio device, apart from its transport.

use ::virtio::Fault;
use handover::Full;
use handover::state::DeviceKind;

use super::io::Io;
use crate::devices::StateError;

/// A virtio device behind its transport. All that a driver writes is untrusted. Nothing that it does makes a device
/// panic, allocate, or loop without bound: a device takes a bounded number of chains and bytes in one call.
pub trait VirtioDevice: Send {
    /// The kind of its state in the hand-over.
    const KIND: DeviceKind;
    /// The device type (section 5).
    const ID: u16;
    /// PCI base class, subclass and programming interface, from the high byte down.
    const CLASS: u32;

    /// The features that it offers beside those of queues and transport. An image that offers fewer does not take over
    /// a guest whose driver uses the others.
    fn features(&self) -> u64 {
        0
    }

    /// The most descriptors of each queue: powers of two up to [`::virtio::QUEUE_SIZE_MOST`]. They stay the same from
    /// image to image.
    fn queue_sizes(&self) -> &[u16];

    /// Bytes of its configuration space.
    fn config_bytes(&self) -> u32 {
        0
    }

    /// Copies configuration from byte `at` on; bytes that are not there stay zero.
    fn read_config(&self, at: u32, into: &mut [u8]) {
        let _ = (at, into);
    }

    /// The driver writes configuration from byte `at` on.
    ///
    /// # Errors
    /// The driver's [`Fault`]: the device needs a reset.
    fn write_config(&mut self, at: u32, from: &[u8], io: &mut Io<'_>) -> Result<(), Fault> {
        let _ = (at, from, io);
        Ok(())
    }

    /// The driver has made chains available in a queue: it has set the device up, and the queue is enabled.
    ///
    /// # Errors
    /// The driver's [`Fault`]: the device needs a reset.
    fn notify(&mut self, queue: u16, io: &mut Io<'_>) -> Result<(), Fault>;

    /// True if it does anything when it is [polled](Self::poll).
    const POLLS: bool = false;

    /// The host has something for it, or it has asked for this by [`Io::poll_soon`].
    ///
    /// # Errors
    /// The driver's [`Fault`]: the device needs a reset.
    fn poll(&mut self, io: &mut Io<'_>) -> Result<(), Fault> {
        let _ = io;
        Ok(())
    }

    /// Whether the device is done with a reset, or with power-on. A driver waits for that before it goes on (section
    /// 4.1.4.3.2): a device that is not ready yet is one that takes longer.
    fn is_ready(&self) -> bool {
        true
    }

    /// The driver has reset a queue: the chains that the device holds of it are gone.
    fn reset_queue(&mut self, queue: u16) {
        let _ = queue;
    }

    /// The driver has reset the device, and all queues.
    fn reset(&mut self) {}

    /// The version of its block in the hand-over.
    fn state_version(&self) -> u32 {
        1
    }

    /// The most bytes that [`save`](Self::save) writes.
    fn state_bytes(&self) -> usize {
        0
    }

    /// Writes its own state; returns the bytes used.
    ///
    /// # Errors
    /// [`Full`] if there is no room.
    fn save(&self, into: &mut [u8]) -> Result<usize, Full> {
        let _ = into;
        Ok(0)
    }

    /// Goes on from a saved state.
    ///
    /// # Errors
    /// [`StateError`] if this device cannot be in it; then it has not changed.
    fn restore(&mut self, version: u32, from: &[u8]) -> Result<(), StateError> {
        let _ = version;
        if from.is_empty() {
            return Ok(());
        }
        Err(StateError { field: "virtio.device", reason: "the device has no state of its own" })
    }
}
