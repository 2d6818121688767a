// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine's ports. A port that no device has reads as all ones and ignores writes.

use super::context::{Initiator, VcpuContext};
use super::registers::RegisterBus;
use super::{Host, Outcome, Stop};
use crate::devices::device::At;
use crate::exit::PortAccess;
use crate::machine::emulate;
use crate::memory::GuestMemory;
use crate::platform::layout::port;
use crate::vcpu::{Gpr, VcpuState};

const COM1_LAST: u16 = port::COM1 + 7;

impl<V: VcpuState + ?Sized, M: GuestMemory, H: Host> VcpuContext<'_, V, M, H> {
    pub(super) fn port(&mut self, access: &PortAccess) -> Outcome {
        if access.is_string {
            return self.reborrow().port_string(access);
        }
        let mut stop = None;
        let value = self.vcpu.gpr(Gpr::Rax) as u32 & access.size.mask() as u32;
        let answer = self.initiator().port_access(access, value, &mut stop);
        if access.is_in {
            emulate::write_register(self.vcpu, Gpr::Rax, access.size, answer.into());
        }
        self.vcpu.set_rip(access.next_rip);
        stop.map_or(Outcome::Resume, Outcome::Stop)
    }

    /// One step of INS or OUTS. Its operand may be memory, device registers, or both.
    fn port_string(&mut self, access: &PortAccess) -> Outcome {
        self.cpu.is_executed_again = false;
        let memory = &self.machine.memory;
        let step = match emulate::port_string(self.vcpu, memory, access) {
            Ok(Some(step)) => step,
            Ok(None) => return Outcome::Resume,
            Err(refused) => return self.refuse(refused),
        };
        self.sync_apic();
        let mut stop = None;
        if access.is_in {
            let value = self.initiator().port_access(access, 0, &mut stop);
            let mut bus = RegisterBus { initiator: self.initiator(), stop: &mut stop };
            step.store(memory, &mut bus, value.into());
        } else {
            let value = step.load(memory, &mut RegisterBus { initiator: self.initiator(), stop: &mut stop });
            self.initiator().port_access(access, value as u32, &mut stop);
        }
        self.vcpu.set_task_priority(self.cpu.lapic.task_priority());
        step.finish(self.vcpu);
        stop.map_or(Outcome::Resume, Outcome::Stop)
    }
}

impl<M: GuestMemory, H: Host> Initiator<'_, M, H> {
    /// Makes one transfer. Returns the value that an IN receives; `stop` is set if the guest ends by it.
    fn port_access(&mut self, access: &PortAccess, value: u32, stop: &mut Option<Stop>) -> u32 {
        let PortAccess { port, size, is_in, .. } = *access;
        let written = if is_in { None } else { Some(value.into()) };
        let bus = &self.machine.bus;
        // The console is the busiest device with ports: it is not searched for.
        if let port::COM1..=COM1_LAST = port {
            let at = At { range: 0, offset: (port - port::COM1).into(), size };
            return self.access_device(bus.com1(), at, written, stop) as u32;
        }
        let found = bus.find_port(port, size).and_then(|place| bus.device(place));
        let Some((device, at)) = found else { return size.mask() as u32 };
        (self.access_device(&*device, at, written, stop) & size.mask()) as u32
    }
}
