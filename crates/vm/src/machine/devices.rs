// SPDX-License-Identifier: MIT OR Apache-2.0
//! Accesses to devices, and their effects once the device is not borrowed any more.

use spin::Mutex;

use super::context::{Initiator, VcpuContext};
use super::{Host, Stop};
use crate::devices::device::{At, Backend, Context, Device};
use crate::devices::outputs::{Outputs, Request};
use crate::memory::GuestMemory;

/// The host as devices reach it.
struct HostBackend<'a, H>(&'a mut H);

impl<H: Host> Backend for HostBackend<'_, H> {
    fn unix_seconds(&self) -> u64 {
        self.0.unix_seconds()
    }

    fn console(&mut self, byte: u8) {
        self.0.console(byte);
    }

    fn console_input(&mut self) -> Option<u8> {
        self.0.console_input()
    }
}

impl<M: GuestMemory, H: Host> Initiator<'_, M, H> {
    /// Reads a device, or writes `written` to it.
    #[inline]
    pub(super) fn access_device<D: Device + ?Sized>(
        &mut self,
        device: &Mutex<D>,
        at: At,
        written: Option<u64>,
        stop: &mut Option<Stop>,
    ) -> u64 {
        self.with_device(device, stop, |device, context| match written {
            None => Device::read(device, at, context),
            Some(value) => {
                Device::write(device, at, value, context);
                0
            }
        })
    }

    /// Borrows a device, and carries out its requests to the rest of the machine.
    #[inline]
    pub(super) fn with_device<D: Device + ?Sized, R>(
        &mut self,
        device: &Mutex<D>,
        stop: &mut Option<Stop>,
        access: impl FnOnce(&mut D, &mut Context<'_>) -> R,
    ) -> R {
        let mut outputs = Outputs::new();
        let mut borrowed = device.lock();
        let (backend, memory) = (&mut HostBackend(&mut *self.host), &self.machine.memory);
        let result = access(&mut borrowed, &mut Context { backend, memory, outputs: &mut outputs });
        if !outputs.is_empty() {
            self.machine.bus.apply_lines(&mut outputs);
            drop(borrowed);
            self.reborrow().carry_out(device, &mut outputs, stop);
        }
        result
    }

    fn carry_out<D: Device + ?Sized>(&mut self, device: &Mutex<D>, outputs: &mut Outputs, stop: &mut Option<Stop>) {
        loop {
            outputs.take_messages().for_each(|message| self.send(&message));
            match outputs.take_request() {
                None => {}
                Some(Request::PowerOff) => *stop = Some(Stop::PowerOff),
                Some(Request::Reset) => *stop = Some(Stop::Reset),
                Some(Request::DebugExit(code)) => *stop = Some(Stop::DebugExit(code.0)),
                Some(Request::Panicked(event)) => self.host.panicked(event),
                Some(Request::Send) => self.host.send_soon(),
                Some(Request::Ejected) => self.host.ejected(),
                Some(Request::Poll) => self.host.poll_soon(),
                Some(Request::DriverFault(kind, fault)) => self.host.driver_fault(kind, fault),
            }
            if !outputs.take_has_more() {
                return;
            }
            device.lock().raise_pending(outputs);
        }
    }
}

impl<V: ?Sized, M: GuestMemory, H: Host> VcpuContext<'_, V, M, H> {
    /// The operator has typed, or a device is to be polled. Hands the guest's console what it has room for; the rest
    /// follows as the guest reads.
    pub fn poll_devices(&mut self) {
        let bus = &self.machine.bus;
        // Neither input nor what devices go on with stops a guest.
        for device in bus.polled() {
            self.initiator().with_device(device, &mut None, |device, context| device.poll(context));
        }
        self.initiator().with_device(bus.com1(), &mut None, |com1, context| com1.take_input(context));
    }
}
