// SPDX-License-Identifier: MIT OR Apache-2.0
//! Device registers in memory: local APIC, I/O APIC, enhanced configuration space. Addresses that nobody has read as
//! all ones and swallow what is written.

use super::{Host, Machine, Processor};
use crate::addr::{AccessSize, Gpa};
use crate::devices::lapic::Mode;
use crate::emulate::{MemoryBus, VectorFile, VectorWrite};
use crate::layout;
use crate::memory::GuestMemory;

const PAGE: u64 = 4096;

/// The machine's device registers as one instruction of one processor sees them.
pub(super) struct RegisterBus<'a, M, H> {
    pub(super) machine: &'a Machine<M>,
    pub(super) processor: &'a mut Processor,
    pub(super) host: &'a mut H,
}

enum Target {
    LocalApic(u16),
    Ioapic(u16),
    Configuration(u64),
    Nothing,
}

impl<M: GuestMemory, H: Host> RegisterBus<'_, M, H> {
    fn target(&self, gpa: Gpa) -> Target {
        let (page, offset) = (gpa.0 & !(PAGE - 1), (gpa.0 % PAGE) as u16);
        let lapic = &self.processor.lapic;
        if lapic.mode() == Mode::XApic && page == lapic.register_page().0 {
            Target::LocalApic(offset)
        } else if page == layout::IOAPIC.0 {
            Target::Ioapic(offset)
        } else if gpa.0.wrapping_sub(layout::ECAM.0) < layout::ECAM_BYTES {
            Target::Configuration(gpa.0 - layout::ECAM.0)
        } else {
            Target::Nothing
        }
    }
}

impl<M: GuestMemory, H: Host> MemoryBus for RegisterBus<'_, M, H> {
    /// Registers of the APICs are 32 bits wide and aligned; a narrower read sees the part that it asks for.
    fn load(&mut self, gpa: Gpa, size: AccessSize) -> u64 {
        let (aligned, shift) = (|offset: u16| offset & !3, (gpa.0 % 4) * 8);
        match self.target(gpa) {
            Target::LocalApic(offset) => {
                let now = self.processor.now(self.host);
                u64::from(self.processor.lapic.read_mmio(aligned(offset), now)) >> shift & size.mask()
            }
            Target::Ioapic(offset) => {
                u64::from(self.machine.devices.lock().ioapic.read(aligned(offset))) >> shift & size.mask()
            }
            Target::Configuration(offset) => self.machine.devices.lock().pci.read_enhanced(offset, size),
            Target::Nothing => size.mask(),
        }
    }

    /// Only whole registers of the APICs can be written.
    fn store(&mut self, gpa: Gpa, size: AccessSize, value: u64) {
        match self.target(gpa) {
            Target::LocalApic(offset) if size == AccessSize::Dword => {
                let now = self.processor.now(self.host);
                let action = self.processor.lapic.write_mmio(offset, value as u32, now);
                self.machine.act(self.processor, self.host, action);
                self.machine.publish_addressing(self.processor);
            }
            Target::Ioapic(offset) if size == AccessSize::Dword => {
                let (processor, host) = (&mut *self.processor, &mut *self.host);
                let mut devices = self.machine.devices.lock();
                devices.ioapic.write(offset, value as u32, &mut |message| {
                    self.machine.send(processor, host, &message);
                });
            }
            Target::Configuration(offset) => self.machine.devices.lock().pci.write_enhanced(offset, size, value),
            _ => {}
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
