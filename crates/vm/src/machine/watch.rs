// SPDX-License-Identifier: MIT OR Apache-2.0
//! The questions of a guest's monitor to its machine: the activity of the other CPUs, I/O of one, and the addresses at
//! which it reads the clock.

use core::sync::atomic::Ordering;

use super::context::VcpuContext;
use super::{Activity, Cpu, ExitKind, Machine, Others, Outcome};
use crate::devices::lapic::Mode;
use crate::memory::GuestMemory;
use crate::vcpu::VcpuState;

impl<M: GuestMemory> Machine<M> {
    /// Returns the activity of the others; `cpu` itself runs.
    pub fn others(&self, cpu: &Cpu) -> Others {
        let itself = usize::from(matches!(cpu.activity, Activity::Running | Activity::Halted));
        let halted_for_good = self.halted_for_good.load(Ordering::Acquire) > 0;
        Others {
            can_run: self.alive.load(Ordering::Acquire) > itself,
            halted_for_good,
            may_be_woken: halted_for_good && self.is_paravirtual,
        }
    }
}

impl<V: VcpuState + ?Sized, M, H> VcpuContext<'_, V, M, H> {
    /// The guest is about to read its time stamp counter. Once seen, it goes on without being stopped.
    #[cold]
    pub(super) fn clock_read(&mut self) -> Outcome {
        self.vcpu.watch_clock_reads(false);
        self.cpu.clock_read_at = Some(self.vcpu.rip());
        Outcome::Resume
    }
}

impl Cpu {
    /// Accesses to ports and to device registers so far. While the local APIC's registers are in memory, accesses to
    /// memory are not counted: a kernel that does nothing else still ends its timer's interrupts.
    pub fn io_accesses(&self) -> u64 {
        let in_memory = if self.lapic.mode() == Mode::XApic { 0 } else { self.exits.get(ExitKind::Memory) };
        self.exits.get(ExitKind::Port) + in_memory
    }

    /// Halts so far.
    pub fn halts(&self) -> u64 {
        self.exits.get(ExitKind::Halt)
    }

    /// Returns where the guest was seen reading its time stamp counter since [`VcpuState::watch_clock_reads`], once.
    pub fn take_clock_read(&mut self) -> Option<u64> {
        self.clock_read_at.take()
    }
}
