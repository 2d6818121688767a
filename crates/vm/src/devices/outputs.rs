// SPDX-License-Identifier: MIT OR Apache-2.0
//! A device's requests to the rest of its machine.

use ::virtio::Fault;
use arrayvec::ArrayVec;

use super::InterruptMessage;
use super::debug_exit::DebugExitCode;
use super::pvpanic::PanicEvent;
use crate::platform::layout::IOAPIC_PINS;

/// Messages of a device that fit: the end of one interrupt may set free as many as the I/O APIC has pins.
const MESSAGES: usize = IOAPIC_PINS;
/// Changes of lines that fit. A device has one line, which falls and rises at most once in an access.
const LINES: usize = 4;
/// A message for each of both.
const ALL_MESSAGES: usize = MESSAGES + LINES;

/// A line of the I/O APIC has a new level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// The pin.
    pub pin: u8,
    /// Whether the line is asserted.
    pub level: bool,
}

/// A guest's request to its host through a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// The machine is to be powered off.
    PowerOff,
    /// The machine is to start again.
    Reset,
    /// A test guest is done.
    DebugExit(DebugExitCode),
    /// The guest reports a panic, and goes on.
    Panicked(PanicEvent),
    /// The guest has ejected a PCI device that it was asked for.
    Ejected,
    /// A device has more to do than one access may cost: it is to be polled soon.
    Poll,
    /// The guest has frames for a network: they are to be forwarded once no device is borrowed.
    Send,
    /// The driver of a virtio device with this kind of state has violated the specification: the device needs a reset.
    DriverFault(u32, Fault),
}

/// Collects the effects of one access. It is filled while the device is borrowed and carried out afterwards.
#[derive(Debug, Default)]
pub struct Outputs {
    lines: ArrayVec<Line, LINES>,
    messages: ArrayVec<InterruptMessage, ALL_MESSAGES>,
    request: Option<Request>,
    has_more: bool,
}

impl Outputs {
    /// Nothing yet.
    #[inline]
    pub const fn new() -> Self {
        Self { lines: ArrayVec::new_const(), messages: ArrayVec::new_const(), request: None, has_more: false }
    }

    /// Sets the level of a line. Levels are applied in their order: a pulse is seen by an edge-triggered pin.
    #[inline]
    pub fn set_line(&mut self, pin: u8, level: bool) {
        // The level that counts is the last one.
        if self.lines.is_full() {
            self.lines.pop();
        }
        self.lines.push(Line { pin, level });
    }

    /// Sends an interrupt message. False if there is no room: then the device keeps the interrupt, and
    /// [`Device::raise_pending`](super::device::Device::raise_pending) is called once these have been sent.
    #[inline]
    #[must_use]
    pub fn send(&mut self, message: InterruptMessage) -> bool {
        let is_sent = self.messages.len() < MESSAGES && self.messages.try_push(message).is_ok();
        self.has_more |= !is_sent;
        is_sent
    }

    /// Sends the I/O APIC's message for one of these lines. There is always room for it.
    pub fn send_for_line(&mut self, message: InterruptMessage) {
        let _ = self.messages.try_push(message);
    }

    /// Makes a request of the host.
    pub fn request(&mut self, request: Request) {
        self.request = Some(request);
    }

    /// Returns whether there is nothing to carry out.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.messages.is_empty() && self.request.is_none()
    }

    /// Returns whether a line has changed.
    #[inline]
    pub fn has_lines(&self) -> bool {
        !self.lines.is_empty()
    }

    /// Takes the changes of lines.
    #[inline]
    pub fn take_lines(&mut self) -> ArrayVec<Line, LINES> {
        core::mem::take(&mut self.lines)
    }

    /// Calls `send` with each message, and drops them.
    pub fn send_messages(&mut self, mut send: impl FnMut(&InterruptMessage)) {
        self.messages.iter().for_each(&mut send);
        self.messages.clear();
    }

    /// Takes the messages.
    pub fn take_messages(&mut self) -> impl Iterator<Item = InterruptMessage> + use<> {
        core::mem::take(&mut self.messages).into_iter()
    }

    /// Takes the request.
    pub fn take_request(&mut self) -> Option<Request> {
        self.request.take()
    }

    /// Returns whether the device keeps interrupts that found no room; once.
    pub fn take_has_more(&mut self) -> bool {
        core::mem::take(&mut self.has_more)
    }
}

#[cfg(test)]
mod tests;
