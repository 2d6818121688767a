// SPDX-License-Identifier: MIT OR Apache-2.0
//! Device registers in memory: local APIC, and what is on the bus. Addresses that nobody has read as all ones and
//! swallow what is written.

use super::{Cpu, Host, Machine, Stop};
use crate::addr::{AccessSize, Gpa};
use crate::devices::lapic::Mode;
use crate::machine::emulate::{MemoryBus, VectorFile, VectorWrite};
use crate::memory::GuestMemory;
use crate::platform::layout;

const PAGE: u64 = 4096;

/// The machine's device registers as one instruction of one CPU sees them.
pub(super) struct RegisterBus<'a, M, H> {
    pub(super) machine: &'a Machine<M>,
    pub(super) cpu: &'a mut Cpu,
    pub(super) host: &'a mut H,
    /// Set if the guest ends by an access.
    pub(super) stop: &'a mut Option<Stop>,
}

impl<M: GuestMemory, H: Host> RegisterBus<'_, M, H> {
    /// The offset in the local APIC's registers, if the address is there.
    fn in_local_apic(&self, gpa: Gpa) -> Option<u16> {
        let lapic = &self.cpu.lapic;
        let is_there = lapic.mode() == Mode::XApic && page_of(gpa) == lapic.register_page().0;
        is_there.then_some((gpa.0 % PAGE) as u16)
    }

    /// An access to what is on the bus.
    fn access(&mut self, gpa: Gpa, size: AccessSize, written: Option<u64>) -> u64 {
        let turn = (&mut *self.cpu, &mut *self.host, &mut *self.stop);
        match self.machine.bus.find_memory(gpa, size).and_then(|place| self.machine.bus.device(place)) {
            Some((device, at)) => self.machine.access_device(device, at, written, turn),
            None => size.mask(),
        }
    }
}

fn page_of(gpa: Gpa) -> u64 {
    gpa.0 & !(PAGE - 1)
}

impl<M: GuestMemory, H: Host> MemoryBus for RegisterBus<'_, M, H> {
    /// Registers of the local APIC are 32 bits wide and aligned; a narrower read sees the part that it asks for. The
    /// I/O APIC is the busiest device on the bus, and to read it has no effect: it is neither searched for nor asked
    /// what comes of it.
    fn load(&mut self, gpa: Gpa, size: AccessSize) -> u64 {
        let value = match self.in_local_apic(gpa) {
            Some(offset) => {
                let now = self.cpu.now(self.host);
                u64::from(self.cpu.lapic.read_mmio(offset & !3, now)) >> ((gpa.0 % 4) * 8)
            }
            None if page_of(gpa) == layout::IOAPIC.0 => {
                self.machine.bus.ioapic().lock().read_part((gpa.0 % PAGE) as u16)
            }
            None => return self.access(gpa, size, None) & size.mask(),
        };
        value & size.mask()
    }

    /// Only whole registers of the local APIC can be written.
    fn store(&mut self, gpa: Gpa, size: AccessSize, value: u64) {
        match self.in_local_apic(gpa) {
            Some(offset) if size == AccessSize::Dword => {
                let now = self.cpu.now(self.host);
                let action = self.cpu.lapic.write_mmio(offset, value as u32, now);
                self.machine.act(self.cpu, self.host, action);
                self.machine.publish_addressing(self.cpu);
            }
            Some(_) => {}
            None => _ = self.access(gpa, size, Some(value & size.mask())),
        }
    }
}

impl<M: GuestMemory, H: Host> VectorFile for RegisterBus<'_, M, H> {
    fn vector(&self, register: u8) -> [u64; 4] {
        self.host.vector(register)
    }

    fn set_vector(&mut self, register: u8, value: [u64; 4], write: VectorWrite) {
        self.host.set_vector(register, value, write);
    }
}
