// SPDX-License-Identifier: MIT OR Apache-2.0
//! Accesses to devices, and what comes of them once the device is not borrowed any more.

use spin::Mutex;

use super::{Cpu, Host, Machine, Stop};
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

impl<M: GuestMemory> Machine<M> {
    /// Reads a device, or writes `written` to it.
    #[inline]
    pub(super) fn access_device<D: Device + ?Sized>(
        &self,
        device: &Mutex<D>,
        at: At,
        written: Option<u64>,
        (cpu, host, stop): (&mut Cpu, &mut impl Host, &mut Option<Stop>),
    ) -> u64 {
        self.with_device(device, (cpu, host, stop), |device, context| match written {
            None => Device::read(device, at, context),
            Some(value) => {
                Device::write(device, at, value, context);
                0
            }
        })
    }

    /// Borrows a device, and carries out what it wants of the rest of the machine.
    #[inline]
    pub(super) fn with_device<D: Device + ?Sized, H: Host, R>(
        &self,
        device: &Mutex<D>,
        (cpu, host, stop): (&mut Cpu, &mut H, &mut Option<Stop>),
        access: impl FnOnce(&mut D, &mut Context<'_>) -> R,
    ) -> R {
        let mut outputs = Outputs::new();
        let mut borrowed = device.lock();
        let backend = &mut HostBackend(&mut *host);
        let result = access(&mut borrowed, &mut Context { backend, memory: &self.memory, outputs: &mut outputs });
        if !outputs.is_empty() {
            self.bus.apply_lines(&mut outputs);
            drop(borrowed);
            self.carry_out(device, &mut outputs, (cpu, host, stop));
        }
        result
    }

    fn carry_out<D: Device + ?Sized>(
        &self,
        device: &Mutex<D>,
        outputs: &mut Outputs,
        (cpu, host, stop): (&mut Cpu, &mut impl Host, &mut Option<Stop>),
    ) {
        loop {
            outputs.take_messages().for_each(|message| self.send(cpu, host, &message));
            match outputs.take_request() {
                None => {}
                Some(Request::PowerOff) => *stop = Some(Stop::PowerOff),
                Some(Request::Reset) => *stop = Some(Stop::Reset),
                Some(Request::DebugExit(code)) => *stop = Some(Stop::DebugExit(code.0)),
                Some(Request::Panicked(event)) => host.panicked(event),
            }
            if !outputs.take_has_more() {
                return;
            }
            device.lock().raise_pending(outputs);
        }
    }

    /// The operator has typed: hands the guest's console what it has room for. The rest follows as the guest reads.
    pub fn console_input(&self, cpu: &mut Cpu, host: &mut impl Host) {
        // Input stops no guest.
        self.with_device(self.bus.com1(), (cpu, host, &mut None), |com1, context| com1.take_input(context));
    }
}
