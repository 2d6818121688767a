// SPDX-License-Identifier: MIT OR Apache-2.0
//! The hypervisor as a machine reaches it.

use super::emulate::VectorWrite;
use ::virtio::Fault;

use crate::devices::pvpanic::PanicEvent;

/// The hypervisor as a machine calls it while it answers an exit.
pub trait Host {
    /// The CPU's time stamp counter.
    fn tsc(&self) -> u64;
    /// Wall clock: seconds since 1970.
    fn unix_seconds(&self) -> u64;
    /// The guest's console has written a byte.
    fn console(&mut self, byte: u8);
    /// The next byte that the operator has typed on the guest's console.
    fn console_input(&mut self) -> Option<u8>;
    /// Makes another vCPU of the guest check its interrupts: it leaves the guest, or wakes up.
    fn kick(&mut self, vcpu: usize);
    /// Returns whether another vCPU of the guest is on the CPU of the one that calls, and so does not run.
    fn shares_cpu(&self, vcpu: usize) -> bool;
    /// Makes the CPU leave the guest after its next entry has delivered an event, before the guest executes
    /// anything.
    fn leave_at_once(&mut self);
    /// Interrupts the CPU when its time stamp counter reaches `deadline`; `None`: not at all.
    fn set_alarm(&mut self, deadline: Option<u64>);
    /// The guest reports that it has panicked.
    fn panicked(&mut self, event: PanicEvent);
    /// The guest has ejected a PCI device that it was asked for.
    fn ejected(&mut self) {}
    /// A device is to be polled soon, by [`poll_devices`](super::context::VcpuContext::poll_devices).
    fn poll_soon(&mut self);
    /// The guest has frames for a network: the vCPU forwards them before it executes anything else.
    fn send_soon(&mut self);
    /// The guest's driver of a virtio device has violated the specification. Once for each device, until the guest is
    /// reset.
    fn driver_fault(&mut self, kind: u32, fault: Fault);
    /// A vector register of the vCPU, see [`crate::machine::emulate::VectorFile`].
    fn vector(&self, register: u8) -> [u64; 4];
    /// Sets a vector register of the vCPU, see [`crate::machine::emulate::VectorFile`].
    fn set_vector(&mut self, register: u8, value: [u64; 4], write: VectorWrite);
}
