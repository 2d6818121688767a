// SPDX-License-Identifier: MIT OR Apache-2.0
//! The interface of every device on the bus of a guest's machine.
//!
//! A device is reached through ports and addresses, keeps its state to itself, and reaches nothing but what its
//! [`Context`] holds. Interrupts and requests are collected in [`Outputs`]; the machine carries them out when no device
//! is borrowed any more, so that no device can call another, and no lock is held while a vCPU is interrupted.

use handover::Full;
use handover::state::DeviceKind;

use super::StateError;
use super::outputs::Outputs;
use crate::addr::{AccessSize, Gpa};
use crate::memory::GuestMemory;

/// Names a device's state in the hand-over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// The kind of device: a [`DeviceKind`]'s number.
    pub kind: u32,
    /// Number among the machine's devices of this kind; a PCI function's slot.
    pub instance: u32,
}

impl Tag {
    /// The only device of its kind.
    pub const fn only(kind: DeviceKind) -> Self {
        Self { kind: kind as u32, instance: 0 }
    }
}

/// Widths of the accesses to ports that a device answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Widths {
    /// All.
    Any,
    /// Accesses of one byte. They go before those of a device that answers all.
    Byte,
}

/// A range that a device decodes for as long as its machine exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Accesses that begin at one of `count` ports.
    Ports {
        /// The first port.
        first: u16,
        /// Number of ports.
        count: u16,
        /// The accesses among these.
        widths: Widths,
    },
    /// Accesses that begin in this range of memory.
    Memory {
        /// The first address.
        first: Gpa,
        /// Its length.
        bytes: u64,
    },
}

/// The first byte of an access. It may reach past the end of the range: nothing is behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    /// The range: the place among [`Device::claims`], or the number of a PCI function's base address register.
    pub range: u8,
    /// From the start of the range.
    pub offset: u64,
    /// Width of the access.
    pub size: AccessSize,
}

/// The host as devices reach it.
pub trait Backend {
    /// Wall clock: seconds since 1970.
    fn unix_seconds(&self) -> u64;
    /// The guest's console has written a byte.
    fn console(&mut self, byte: u8);
    /// The next byte that the operator has typed on the guest's console.
    fn console_input(&mut self) -> Option<u8>;
}

/// The environment of a device during an access.
pub struct Context<'a> {
    /// The host.
    pub backend: &'a mut dyn Backend,
    /// The guest's memory.
    pub memory: &'a dyn GuestMemory,
    /// The device's requests to the rest of the machine.
    pub outputs: &'a mut Outputs,
}

/// A device. Nothing that a guest does makes one panic, allocate or loop without bound.
pub trait Device: Send {
    /// Names its state in the hand-over.
    fn tag(&self) -> Tag;

    /// The ports and addresses that it decodes. The guest chooses those of a PCI function: it claims nothing.
    fn claims(&self) -> &'static [Claim] {
        &[]
    }

    /// Reads; bits above the access's size are ignored.
    fn read(&mut self, at: At, context: &mut Context<'_>) -> u64;

    /// Writes; bits of `value` above the access's size are zero.
    fn write(&mut self, at: At, value: u64, context: &mut Context<'_>);

    /// Returns whether it does anything when it is [polled](Self::poll).
    fn polls(&self) -> bool {
        false
    }

    /// Goes on without an access of the guest's: input may have come, or more was to be done than one access may cost.
    fn poll(&mut self, context: &mut Context<'_>) {
        let _ = context;
    }

    /// Raises interrupts that found no room in earlier outputs.
    fn raise_pending(&mut self, outputs: &mut Outputs) {
        let _ = outputs;
    }

    /// The pin of the I/O APIC whose level-triggered interrupts the device must be informed of when they end.
    fn line(&self) -> Option<u8> {
        None
    }

    /// The guest has ended the interrupt of its [`line`](Self::line).
    fn end_line(&mut self, outputs: &mut Outputs) {
        let _ = outputs;
    }

    /// Puts the device into its state after power-on.
    fn reset(&mut self);

    /// Returns whether an image that does not know such a device can go on with the guest in its present state, without
    /// the device's.
    fn is_dispensable(&self) -> bool {
        false
    }

    /// The image before has saved no state of the device. Returns whether the guest can go on so.
    fn restore_nothing(&mut self) -> bool {
        false
    }

    /// The version of the state that [`save`](Self::save) writes.
    fn state_version(&self) -> u32 {
        1
    }

    /// The most bytes that [`save`](Self::save) writes.
    fn state_bytes(&self) -> usize;

    /// Writes its state to the start of `into`, without allocating; returns the bytes used.
    ///
    /// # Errors
    /// [`Full`] if there is no room.
    fn save(&self, into: &mut [u8]) -> Result<usize, Full>;

    /// Goes on from a saved state of this version: the device's own or an older one.
    ///
    /// # Errors
    /// [`StateError`] if this device cannot be in it; then the device has not changed.
    fn restore(&mut self, version: u32, from: &[u8]) -> Result<(), StateError>;
}
