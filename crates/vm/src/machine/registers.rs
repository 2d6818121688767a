// SPDX-License-Identifier: MIT OR Apache-2.0
//! Device registers in memory: local APIC, and those on the bus. Addresses that no device has read as all ones and
//! ignore writes.

use super::completion::raise;
use super::context::{Initiator, VcpuContext};
use super::{Fault, Host, Outcome, Stop};
use crate::addr::{AccessSize, Gpa};
use crate::devices::lapic::Mode;
use crate::exit::{MemoryAccess, MemoryFault};
use crate::machine::emulate::{self, MemoryBus, Refused, VectorFile, VectorWrite};
use crate::memory::GuestMemory;
use crate::platform::layout;
use crate::vcpu::{Exception, VcpuState};

const PAGE: u64 = 4096;

/// The machine's device registers as one instruction of one CPU sees them.
pub(super) struct RegisterBus<'a, M, H> {
    pub(super) initiator: Initiator<'a, M, H>,
    /// Set if the guest ends by an access.
    pub(super) stop: &'a mut Option<Stop>,
}

impl<V: VcpuState + ?Sized, M: GuestMemory, H: Host> VcpuContext<'_, V, M, H> {
    /// An instruction has accessed an address where the guest has no memory, or does not have it yet.
    pub(super) fn memory_fault(&mut self, fault: &MemoryFault) -> Outcome {
        if self.machine.memory.is_on_demand(fault.gpa) {
            self.cpu.is_executed_again = true;
            return Outcome::Touched(fault.gpa);
        }
        if fault.during_walk {
            return Outcome::Stop(Stop::Fault(Fault::PageTables(fault.gpa)));
        }
        if fault.access == MemoryAccess::Execute {
            // Nothing drives the bus there: a CPU fetches all ones, which is no instruction.
            return raise(self.vcpu, Exception::InvalidOpcode);
        }
        if self.vcpu.was_delivering() {
            // It was not the instruction at RIP that touched the address, but the delivery of that event.
            return Outcome::Stop(Stop::Fault(Fault::Delivery(fault.gpa)));
        }
        self.cpu.is_executed_again = false;
        self.sync_apic();
        let mut stop = None;
        let outcome = match self.emulate_access(fault.gpa, &mut stop) {
            Ok(()) => stop.map_or(Outcome::Resume, Outcome::Stop),
            Err(refused) => self.refuse(refused),
        };
        self.vcpu.set_task_priority(self.cpu.lapic.task_priority());
        outcome
    }

    #[inline]
    fn emulate_access(&mut self, gpa: Gpa, stop: &mut Option<Stop>) -> Result<(), Refused> {
        let VcpuContext { machine, vcpu, cpu, host } = self.reborrow();
        let access = emulate::decode(vcpu, &machine.memory, &mut cpu.recent)?;
        let mut bus = RegisterBus { initiator: Initiator { machine, cpu, host }, stop };
        emulate::access(vcpu, &machine.memory, gpa, &access, &mut bus)
    }
}

impl<M: GuestMemory, H: Host> RegisterBus<'_, M, H> {
    /// The offset in the local APIC's registers, if the address is there.
    fn in_local_apic(&self, gpa: Gpa) -> Option<u16> {
        let lapic = &self.initiator.cpu.lapic;
        let is_there = lapic.mode() == Mode::XApic && page_of(gpa) == lapic.register_page().0;
        is_there.then_some((gpa.0 % PAGE) as u16)
    }

    /// An access to a device on the bus.
    fn access(&mut self, gpa: Gpa, size: AccessSize, written: Option<u64>) -> u64 {
        let bus = &self.initiator.machine.bus;
        match bus.find_memory(gpa, size).and_then(|place| bus.device(place)) {
            Some((device, at)) => self.initiator.access_device(&*device, at, written, self.stop),
            None => size.mask(),
        }
    }
}

fn page_of(gpa: Gpa) -> u64 {
    gpa.0 & !(PAGE - 1)
}

impl<M: GuestMemory, H: Host> MemoryBus for RegisterBus<'_, M, H> {
    /// Registers of the local APIC are 32 bits wide and aligned; a narrower read sees the part that it asks for. The
    /// I/O APIC is the busiest device on the bus, and to read it has no effect: it is not searched for, and its outputs
    /// are not checked.
    fn load(&mut self, gpa: Gpa, size: AccessSize) -> u64 {
        let value = match self.in_local_apic(gpa) {
            Some(offset) => {
                let Initiator { cpu, host, .. } = &mut self.initiator;
                let now = cpu.now(*host);
                u64::from(cpu.lapic.read_mmio(offset & !3, now)) >> ((gpa.0 % 4) * 8)
            }
            None if page_of(gpa) == layout::IOAPIC.0 => {
                self.initiator.machine.bus.ioapic().lock().read_part((gpa.0 % PAGE) as u16)
            }
            None => return self.access(gpa, size, None) & size.mask(),
        };
        value & size.mask()
    }

    /// Only whole registers of the local APIC can be written.
    fn store(&mut self, gpa: Gpa, size: AccessSize, value: u64) {
        match self.in_local_apic(gpa) {
            Some(offset) if size == AccessSize::Dword => {
                let Initiator { cpu, host, .. } = &mut self.initiator;
                let now = cpu.now(*host);
                let action = cpu.lapic.write_mmio(offset, value as u32, now);
                self.initiator.act(action);
                self.initiator.machine.publish_addressing(self.initiator.cpu);
            }
            Some(_) => {}
            None => _ = self.access(gpa, size, Some(value & size.mask())),
        }
    }
}

impl<M: GuestMemory, H: Host> VectorFile for RegisterBus<'_, M, H> {
    fn vector(&self, register: u8) -> [u64; 4] {
        self.initiator.host.vector(register)
    }

    fn set_vector(&mut self, register: u8, value: [u64; 4], write: VectorWrite) {
        self.initiator.host.set_vector(register, value, write);
    }
}
