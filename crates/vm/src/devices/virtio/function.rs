// SPDX-License-Identifier: MIT OR Apache-2.0
//! A virtio device as the device behind a PCI function.

use ::virtio::Fault;
use handover::Full;

use super::common::Effect;
use super::device::VirtioDevice;
use super::io::Io;
use super::layout::{BAR, COMMON, DEVICE, ISR, NOTIFY, NOTIFY_MULTIPLIER};
use super::state;
use super::transport::Transport;
use super::window::Window;
use crate::devices::StateError;
use crate::devices::device::{At, Context};
use crate::devices::outputs::Outputs;
use crate::devices::pci::{Behind, Endpoint, Function};
use crate::memory::GuestMemory;

/// A device and its transport.
#[derive(Debug)]
pub struct Virtio<D> {
    transport: Transport,
    window: Window,
    device: D,
}

impl<D: VirtioDevice> Virtio<D> {
    pub(super) fn new(device: D, window: Window) -> Self {
        let transport = Transport::new(D::KIND as u32, device.features(), device.queue_sizes());
        Self { transport, window, device }
    }

    /// Lets the device work. An error is the driver's fault.
    fn work(
        &mut self,
        function: &mut Function,
        (memory, outputs): (&dyn GuestMemory, &mut Outputs),
        act: impl FnOnce(&mut D, &mut Io<'_>) -> Result<(), Fault>,
    ) {
        let transport = &mut self.transport;
        let mut io = Io { transport, function: &mut *function, memory, outputs: &mut *outputs };
        if let Err(fault) = act(&mut self.device, &mut io) {
            self.transport.fail(fault, function, outputs);
        }
    }

    fn read_register(&mut self, at: At, function: &Function) -> u64 {
        if let Some(value) = function.read_msix(at) {
            return value;
        }
        if at.range != BAR {
            return at.size.mask();
        }
        if let Some(place) = COMMON.place(at.offset) {
            self.transport.read_common(place, at.size, self.device.is_ready())
        } else if let Some(place) = DEVICE.place(at.offset) {
            let mut bytes = [0; 8];
            self.device.read_config(place, &mut bytes[..at.size.bytes()]);
            u64::from_le_bytes(bytes)
        } else if ISR.place(at.offset).is_some() {
            // Reading acknowledges (4.1.4.5).
            core::mem::take(&mut self.transport.isr).into()
        } else {
            0
        }
    }

    fn write_register(&mut self, at: At, value: u64, function: &mut Function, context: &mut Context<'_>) {
        if at.range != BAR {
            return;
        }
        let host = (context.memory, &mut *context.outputs);
        if let Some(place) = NOTIFY.place(at.offset) {
            let queue = (place / NOTIFY_MULTIPLIER) as u16;
            if self.transport.queue(queue).is_some() {
                self.work(function, host, |device, io| device.notify(queue, io));
            }
        } else if let Some(place) = COMMON.place(at.offset) {
            match self.transport.write_common(place, at.size, value) {
                Ok(effect) => self.apply(effect),
                Err(fault) => self.transport.fail(fault, function, context.outputs),
            }
        } else if let Some(place) = DEVICE.place(at.offset) {
            let bytes = value.to_le_bytes();
            self.work(function, host, |device, io| device.write_config(place, &bytes[..at.size.bytes()], io));
        }
    }

    fn apply(&mut self, effect: Effect) {
        match effect {
            Effect::Nothing => {}
            Effect::Reset => {
                self.transport.reset();
                self.device.reset();
            }
            Effect::ResetQueue(queue) => self.device.reset_queue(queue),
        }
    }
}

impl<D: VirtioDevice> Endpoint<Virtio<D>> {
    /// Lets the device work for the host, beside what its driver notifies it of: input has come, a request is done.
    /// Interrupts are in `outputs`, e.g. those of [`with_function`](crate::machine::Machine::with_function).
    pub fn work(
        &mut self,
        memory: &dyn GuestMemory,
        outputs: &mut Outputs,
        act: impl FnOnce(&mut D, &mut Io<'_>) -> Result<(), Fault>,
    ) {
        let (function, virtio) = self.parts();
        virtio.work(function, (memory, outputs), act);
    }

    /// The device.
    pub fn virtio_device(&mut self) -> &mut D {
        &mut self.parts().1.device
    }
}

impl<D: VirtioDevice> Behind for Virtio<D> {
    fn kind(&self) -> u32 {
        D::KIND as u32
    }

    fn read(&mut self, at: At, function: &mut Function, _: &mut Context<'_>) -> u64 {
        self.read_register(at, function)
    }

    #[inline]
    fn write(&mut self, at: At, value: u64, function: &mut Function, context: &mut Context<'_>) {
        self.write_register(at, value, function, context);
    }

    fn before_config_read(&mut self, register: u8, function: &mut Function, _: &mut Context<'_>) {
        if let Some(at) = self.window.access(register, function) {
            let value = self.read_register(at, function);
            self.window.set_data(value as u32, function);
        }
    }

    fn after_config_write(&mut self, register: u8, function: &mut Function, context: &mut Context<'_>) {
        if let Some(at) = self.window.access(register, function) {
            let value = u64::from(self.window.data(function)) & at.size.mask();
            if !function.write_msix(at, value, context.outputs) {
                self.write_register(at, value, function, context);
            }
        }
    }

    fn polls(&self) -> bool {
        D::POLLS
    }

    fn poll(&mut self, function: &mut Function, context: &mut Context<'_>) {
        if self.transport.is_running() {
            self.work(function, (context.memory, &mut *context.outputs), D::poll);
        }
    }

    fn reset(&mut self) {
        self.transport.reset();
        self.device.reset();
    }

    fn state_version(&self) -> u32 {
        self.device.state_version()
    }

    fn state_bytes(&self) -> usize {
        state::bytes(&self.transport) + self.device.state_bytes()
    }

    fn save(&self, into: &mut [u8]) -> Result<usize, Full> {
        let used = state::save(&self.transport, into)?;
        Ok(used + self.device.save(into.get_mut(used..).ok_or(Full)?)?)
    }

    fn restore(&mut self, version: u32, from: &[u8]) -> Result<(), StateError> {
        let (transport, own) = state::restored(&self.transport, from)?;
        self.device.restore(version, own)?;
        self.transport = transport;
        Ok(())
    }
}
