// SPDX-License-Identifier: MIT OR Apache-2.0
//! The one argument of everything that answers a vCPU: its machine, its state, and the host.
//!
//! [`VcpuContext`] is the argument of exits and entries. Accesses to devices and interrupt messages need all of it but
//! the architectural state: an [`Initiator`]. So an instruction can change that state while its operands are accessed.

use super::{Cpu, Machine};
use crate::memory::GuestMemory;
use crate::vcpu::VcpuState;

/// One vCPU of a machine while its exit is answered, or its next entry prepared.
pub struct VcpuContext<'a, V: ?Sized, M, H> {
    pub(super) machine: &'a Machine<M>,
    /// Its architectural state.
    pub(super) vcpu: &'a mut V,
    /// The rest of its state.
    pub(super) cpu: &'a mut Cpu,
    pub(super) host: &'a mut H,
}

/// A vCPU that accesses a device or sends an interrupt message.
pub(super) struct Initiator<'a, M, H> {
    pub(super) machine: &'a Machine<M>,
    pub(super) cpu: &'a mut Cpu,
    pub(super) host: &'a mut H,
}

impl<M> Machine<M> {
    /// Returns the context of one of this machine's vCPUs.
    #[inline(always)]
    pub fn context<'a, V: ?Sized, H>(
        &'a self,
        vcpu: &'a mut V,
        cpu: &'a mut Cpu,
        host: &'a mut H,
    ) -> VcpuContext<'a, V, M, H> {
        VcpuContext { machine: self, vcpu, cpu, host }
    }
}

impl<V: ?Sized, M, H> VcpuContext<'_, V, M, H> {
    /// Returns the same context in another place.
    ///
    /// A function that is not inlined is called through this. The compiler keeps in memory what it passes the address
    /// of: this way the context is stored only where such a function is called, not at every exit.
    #[inline(always)]
    pub(super) fn reborrow(&mut self) -> VcpuContext<'_, V, M, H> {
        self.machine.context(self.vcpu, self.cpu, self.host)
    }

    /// Returns the same context for code that is seldom executed, which exists once for all types of vCPUs.
    pub(super) fn erased(&mut self) -> VcpuContext<'_, dyn VcpuState, M, H>
    where
        V: VcpuState,
    {
        self.machine.context(self.vcpu.erased(), self.cpu, self.host)
    }

    /// Returns the vCPU as the initiator of an access or a message.
    #[inline(always)]
    pub(super) fn initiator(&mut self) -> Initiator<'_, M, H> {
        Initiator { machine: self.machine, cpu: self.cpu, host: self.host }
    }
}

impl<V: VcpuState + ?Sized, M: GuestMemory, H> VcpuContext<'_, V, M, H> {
    /// Brings the local APIC up to date with what the guest has done to it without an exit.
    #[inline]
    pub(super) fn sync_apic(&mut self) {
        self.cpu.sync_apic(self.vcpu, &self.machine.memory);
    }
}

impl<M, H> Initiator<'_, M, H> {
    /// The same as [`VcpuContext::reborrow`], for the same reason.
    #[inline(always)]
    pub(super) fn reborrow(&mut self) -> Initiator<'_, M, H> {
        Initiator { machine: self.machine, cpu: self.cpu, host: self.host }
    }
}
