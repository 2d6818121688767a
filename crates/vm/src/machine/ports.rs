// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine's ports. A port that nobody has reads as all ones and swallows what is written.

use super::{Devices, Host, Machine, Processor, Stop};
use crate::addr::AccessSize;
use crate::devices::power::{PowerRegister, PowerRequest};
use crate::devices::serial::Serial;
use crate::exit::PortAccess;
use crate::layout::{COM1_GSI, port};
use crate::memory::GuestMemory;

/// COM1's register that bytes are read from.
const RECEIVE_BUFFER: u8 = 0;
const COM1_LAST: u16 = port::COM1 + 7;
const CMOS_DATA: u16 = port::CMOS + 1;
const PCI_LAST: u16 = port::PCI_DATA + 3;
const SLEEP_STATUS: u16 = port::SLEEP_CONTROL + 1;

impl<M: GuestMemory> Machine<M> {
    /// One transfer. Returns what an IN receives; `stop` is set if the guest ends by it.
    pub(super) fn port_access(
        &self,
        processor: &mut Processor,
        host: &mut impl Host,
        access: &PortAccess,
        value: u32,
        stop: &mut Option<Stop>,
    ) -> u32 {
        let nothing = access.size.mask() as u32;
        match access.port {
            port::COM1..=COM1_LAST => self.serial(processor, host, access, value),
            port::CMOS..=CMOS_DATA => self.cmos(host, access, value),
            port::RESET if access.size == AccessSize::Byte => self.power(access, value, stop),
            port::SLEEP_CONTROL..=SLEEP_STATUS => self.power(access, value, stop),
            port::PCI_ADDRESS..=PCI_LAST => self.pci(access, value),
            port::PVPANIC => self.pvpanic(host, access, value),
            port::DEBUG_EXIT => self.debug_exit(access, value, stop),
            _ => nothing,
        }
    }

    /// COM1. Its registers are bytes; a wider access reaches only the first.
    fn serial(&self, processor: &mut Processor, host: &mut impl Host, access: &PortAccess, value: u32) -> u32 {
        let offset = (access.port - port::COM1) as u8;
        let mut devices = self.devices.lock();
        let answer = if access.is_in {
            let value = u32::from(devices.serial.read(offset));
            if offset == RECEIVE_BUFFER {
                // The line falls with the last byte read, and rises with the next one: to an edge-triggered pin that is
                // news.
                self.update_serial_line(&mut devices, processor, host);
                devices.serial.fill(host);
            }
            value
        } else {
            devices.serial.write(offset, value as u8, &mut |byte| host.console(byte));
            0
        };
        self.update_serial_line(&mut devices, processor, host);
        answer
    }

    /// The UART's interrupt line is looked at after everything that can move it.
    fn update_serial_line(&self, devices: &mut Devices, processor: &mut Processor, host: &mut impl Host) {
        let level = devices.serial.interrupt_line();
        if let Some(message) = devices.ioapic.set_line(COM1_GSI, level) {
            self.send(processor, host, &message);
        }
    }

    /// The operator has typed: hands the guest's console what it has room for. The rest follows as the guest reads.
    pub fn console_input(&self, processor: &mut Processor, host: &mut impl Host) {
        let mut devices = self.devices.lock();
        devices.serial.fill(host);
        self.update_serial_line(&mut devices, processor, host);
    }

    fn cmos(&self, host: &impl Host, access: &PortAccess, value: u32) -> u32 {
        let offset = (access.port - port::CMOS) as u8;
        let mut devices = self.devices.lock();
        if access.is_in {
            return devices.cmos.read(offset, host.unix_seconds()).into();
        }
        devices.cmos.write(offset, value as u8, host.unix_seconds());
        0
    }

    fn power(&self, access: &PortAccess, value: u32, stop: &mut Option<Stop>) -> u32 {
        let Some(register) = PowerRegister::at_port(access.port) else { return access.size.mask() as u32 };
        let mut devices = self.devices.lock();
        if access.is_in {
            return devices.power.read(register).into();
        }
        *stop = devices.power.write(register, value as u8).map(|request| match request {
            PowerRequest::PowerOff => Stop::PowerOff,
            PowerRequest::Reset => Stop::Reset,
        });
        0
    }

    fn pci(&self, access: &PortAccess, value: u32) -> u32 {
        let offset = (access.port - port::PCI_ADDRESS) as u8;
        let mut devices = self.devices.lock();
        if access.is_in {
            return devices.pci.read_port(offset, access.size);
        }
        devices.pci.write_port(offset, access.size, value);
        0
    }

    fn pvpanic(&self, host: &mut impl Host, access: &PortAccess, value: u32) -> u32 {
        let mut devices = self.devices.lock();
        if access.is_in {
            return devices.pvpanic.read().into();
        }
        if let Some(event) = devices.pvpanic.write(value as u8) {
            host.panicked(event);
        }
        0
    }

    fn debug_exit(&self, access: &PortAccess, value: u32, stop: &mut Option<Stop>) -> u32 {
        let mut devices = self.devices.lock();
        let Some(device) = &mut devices.debug_exit else { return access.size.mask() as u32 };
        if access.is_in {
            return device.read();
        }
        *stop = device.write(0, access.size, value).map(|code| Stop::DebugExit(code.0));
        0
    }
}

impl Serial {
    /// Takes what the operator has typed, as much as there is room for.
    fn fill(&mut self, host: &mut impl Host) {
        while self.room() > 0 {
            let Some(byte) = host.console_input() else { break };
            // There is room: it cannot be full.
            let _ = self.receive(byte);
        }
    }
}
