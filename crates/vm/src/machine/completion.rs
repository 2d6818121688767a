// SPDX-License-Identifier: MIT OR Apache-2.0
//! Completion of an instruction that exited: with its results, or with an exception.

use super::context::VcpuContext;
use super::{Cpu, Fault, Outcome, Stop};
use crate::exit::{Exit, PortAccess};
use crate::machine::emulate::Refused;
use crate::machine::instruction::{self, Usual};
use crate::memory::GuestMemory;
use crate::vcpu::{Event, Exception, Rflags, VcpuState};

/// Encodings that are skipped without decoding.
pub(super) mod usual {
    use crate::machine::instruction::Usual;

    pub const CPUID: Usual = Usual::new(&[0x0f, 0xa2]);
    pub const HLT: Usual = Usual::new(&[0xf4]);
    pub const PAUSE: Usual = Usual::new(&[0xf3, 0x90]);
    pub const RDPMC: Usual = Usual::new(&[0x0f, 0x33]);
    pub const RDMSR: Usual = Usual::new(&[0x0f, 0x32]);
    pub const WRMSR: Usual = Usual::new(&[0x0f, 0x30]);
    pub const WBINVD: Usual = Usual::new(&[0x0f, 0x09]);
    pub const VMMCALL: Usual = Usual::new(&[0x0f, 0x01, 0xd9]);
    pub const XSETBV: Usual = Usual::new(&[0x0f, 0x01, 0xd1]);
}

impl<V: VcpuState + ?Sized, M: GuestMemory, H> VcpuContext<'_, V, M, H> {
    /// Completes an instruction that has been carried out: goes past it and puts its results in place, or raises the
    /// exception of an instruction that can no longer be skipped.
    #[inline]
    pub(super) fn done(&mut self, usual: Usual, results: impl FnOnce(&mut V)) -> Outcome {
        match instruction::skip(self.vcpu, &self.machine.memory, usual) {
            Ok(()) => {
                results(self.vcpu);
                Outcome::Resume
            }
            Err(exception) => raise(self.vcpu, exception),
        }
    }

    /// The instruction could not be emulated.
    pub(super) fn refuse(&mut self, refused: Refused) -> Outcome {
        match refused {
            Refused::Exception(exception) => raise(self.vcpu, exception),
            Refused::Changed => {
                self.cpu.is_executed_again = true;
                Outcome::Resume
            }
            Refused::Unsupported(_) => match instruction::fetch(self.vcpu, &self.machine.memory) {
                Ok(bytes) => {
                    let found = instruction::decode(self.vcpu, &bytes);
                    let whole = found.map_or(bytes, |found| bytes.of_instruction(&found));
                    Outcome::Stop(Stop::Fault(Fault::Instruction(whole)))
                }
                Err(exception) => raise(self.vcpu, exception),
            },
        }
    }
}

/// Gives the guest an exception; one that an exit interrupted has been delivered then. RFLAGS.RF of a fault's frame is
/// set, so that a breakpoint on the instruction does not come twice (AMD APM vol. 2, section 3.1.6).
pub(super) fn raise(vcpu: &mut (impl VcpuState + ?Sized), exception: Exception) -> Outcome {
    if !vcpu.event_pending() {
        if exception.is_fault() {
            vcpu.set_rflags(vcpu.rflags() | Rflags::RESUME);
        }
        vcpu.inject(Event::Exception(exception));
    }
    Outcome::Resume
}

impl Cpu {
    /// The guest has raised an exception that is intercepted (#DB, #AC); it gets it. Both are benign (AMD APM vol. 2,
    /// section 8.2.9): raised while another event was being delivered, they make no double fault. They go before that
    /// event: its instruction raises an exception again, an interrupt or NMI waits for its turn.
    #[cold]
    pub(super) fn raise_again(&mut self, vcpu: &mut (impl VcpuState + ?Sized), exception: Exception) -> Outcome {
        if let Some(vector) = vcpu.withdraw_interrupt() {
            self.lapic.requeue(vector);
        }
        if vcpu.drop_event() {
            self.nmi.requeue();
            vcpu.watch_interrupt_return(false);
        }
        raise(vcpu, exception)
    }

    /// The guest single-steps (RFLAGS.TF). An instruction that was carried out here, or one step of a repeated one, is
    /// followed by the trap with which the CPU would have ended it (AMD APM vol. 2, section 13.1.4).
    #[cold]
    pub(super) fn trap(&self, exit: &Exit, rip_before: u64, vcpu: &mut (impl VcpuState + ?Sized)) {
        let may_repeat = matches!(exit, Exit::MemoryFault(_) | Exit::Port(PortAccess { is_string: true, .. }));
        let is_done = vcpu.rip() != rip_before || may_repeat && !self.is_executed_again;
        if is_done && !vcpu.event_pending() {
            vcpu.inject(Event::Exception(Exception::SingleStep));
        }
    }
}
