// SPDX-License-Identifier: MIT OR Apache-2.0
//! The one `match` over why a CPU left its guest.

use super::completion::{raise, usual};
use super::context::VcpuContext;
use super::{Activity, ExitKind, Fault, Host, Outcome, Stop};
use crate::cpu::cpuid::CpuidView;
use crate::devices::lapic::Mode;
use crate::exit::Exit;
use crate::machine::{emulate, instruction};
use crate::memory::GuestMemory;
use crate::vcpu::{Exception, Gpr, Rflags, VcpuState, cr4};

impl<V: VcpuState + ?Sized, M: GuestMemory, H: Host> VcpuContext<'_, V, M, H> {
    /// Answers an exit.
    // This and `answer` are inlined into the vCPU's loop: a call would store the context and load it again at every
    // exit, and save all registers besides.
    #[inline(always)]
    pub fn handle(&mut self, exit: Exit) -> Outcome {
        self.cpu.exits.count(kind_of(&exit));
        let exit = match self.cpu.step {
            None => exit,
            Some(_) => match self.cpu.end_step(exit, self.vcpu) {
                Some(exit) => exit,
                None => return Outcome::Resume,
            },
        };
        let rip = self.vcpu.rip();
        let outcome = self.answer(exit);
        if self.vcpu.rflags().contains(Rflags::TRAP) {
            self.cpu.trap(&exit, rip, self.vcpu);
        }
        outcome
    }

    #[inline(always)]
    fn answer(&mut self, exit: Exit) -> Outcome {
        match exit {
            Exit::Cpuid => self.cpuid(),
            Exit::MsrRead => self.msr_read(),
            Exit::MsrWrite => self.msr_write(),
            Exit::Port(access) => self.reborrow().port(&access),
            Exit::MemoryFault(fault) => self.reborrow().memory_fault(&fault),
            Exit::Halt => self.reborrow().halt(),
            Exit::InterruptWindow => Outcome::Resume,
            Exit::InterruptReturn => {
                self.cpu.nmi.note_return(self.vcpu.rip());
                self.vcpu.watch_interrupt_return(false);
                Outcome::Resume
            }
            Exit::NmiWindow => {
                self.cpu.nmi.note_handled();
                self.vcpu.watch_interrupt_return(false);
                Outcome::Resume
            }
            Exit::Pause => match self.done(usual::PAUSE, |_| ()) {
                Outcome::Resume => Outcome::Yield,
                other => other,
            },
            Exit::HostInterrupt | Exit::HostNmi => self.host_interrupt(),
            Exit::Exception(exception) => self.cpu.raise_again(self.vcpu, exception),
            Exit::MachineCheck => Outcome::MachineCheck,
            Exit::Hypercall => self.erased().hypercall(),
            Exit::Xsetbv => self.reborrow().xsetbv(),
            Exit::TaskPriorityWrite { source } => {
                match emulate::write_task_priority(self.vcpu, &self.machine.memory, source) {
                    Ok(()) => Outcome::Resume,
                    Err(refused) => self.reborrow().refuse(refused),
                }
            }
            Exit::ClockRead => self.reborrow().clock_read(),
            Exit::CounterRead => self.reborrow().counter_read(),
            Exit::AbsentInstruction => raise(self.vcpu, Exception::InvalidOpcode),
            Exit::CacheFlush => self.done(usual::WBINVD, |_| ()),
            Exit::TaskSwitch => Outcome::Stop(Stop::Fault(Fault::TaskSwitch)),
            Exit::Shutdown => Outcome::Stop(Stop::TripleFault),
            Exit::EntryRefused => Outcome::Stop(Stop::Fault(Fault::BadState(self.vcpu.refusal()))),
            Exit::Unknown { code } => Outcome::Stop(Stop::Fault(Fault::UnknownExit(code))),
        }
    }

    #[inline]
    fn cpuid(&mut self) -> Outcome {
        let lapic = &self.cpu.lapic;
        let has_no_apic = lapic.mode() == Mode::Disabled;
        let (cr4, xcr0) = (self.vcpu.cr4(), self.vcpu.xcr0());
        let view = CpuidView { apic_id: lapic.id(), cr4, xcr0, has_no_apic };
        let leaf = self.vcpu.gpr(Gpr::Rax) as u32;
        let subleaf = self.vcpu.gpr(Gpr::Rcx) as u32;
        let answer = self.machine.cpuid.lookup(leaf, subleaf, &view);
        self.done(usual::CPUID, |vcpu| {
            vcpu.set_gpr(Gpr::Rax, answer.eax.into());
            vcpu.set_gpr(Gpr::Rbx, answer.ebx.into());
            vcpu.set_gpr(Gpr::Rcx, answer.ecx.into());
            vcpu.set_gpr(Gpr::Rdx, answer.edx.into());
        })
    }

    // Not inlined: the loop would have fewer registers for the exits that come often.
    #[inline(never)]
    fn halt(&mut self) -> Outcome {
        let is_masked = !self.vcpu.rflags().contains(Rflags::INTERRUPT);
        if let Err(exception) = instruction::skip(self.vcpu, &self.machine.memory, usual::HLT) {
            return raise(self.vcpu, exception);
        }
        if core::mem::take(&mut self.cpu.is_unhalted) {
            return Outcome::Resume;
        }
        let is_single_stepped = self.vcpu.rflags().contains(Rflags::TRAP);
        let nmi = &mut self.cpu.nmi;
        if is_single_stepped || nmi.is_pending() && nmi.is_open(self.vcpu.rip()) {
            return Outcome::Resume;
        }
        self.machine.set_activity(self.cpu, if is_masked { Activity::HaltedForGood } else { Activity::Halted });
        let can_be_woken = self.machine.is_any_cpu_alive();
        if can_be_woken { Outcome::Idle } else { Outcome::Stop(Stop::Fault(Fault::HaltedForever)) }
    }

    /// The guest was interrupted for the host.
    #[inline]
    fn host_interrupt(&mut self) -> Outcome {
        if self.vcpu.is_in_interrupt_shadow() {
            self.erased().complete_halt();
        }
        Outcome::HostInterrupt
    }

    /// The guest was interrupted in a shadow. If that was between its STI and the HLT that it shadows, the HLT is
    /// carried out here: an interrupt must not come between the two, and not every CPU keeps the shadow across an
    /// entry (the one that QEMU 7.2 emulates does not), so that the guest would sleep through what was to wake it.
    #[cold]
    #[inline(never)]
    fn complete_halt(&mut self) {
        if self.vcpu.rflags().contains(Rflags::INTERRUPT)
            && !self.vcpu.event_pending()
            && instruction::skip_if(self.vcpu, &self.machine.memory, usual::HLT)
            && !core::mem::take(&mut self.cpu.is_unhalted)
        {
            self.machine.set_activity(self.cpu, Activity::Halted);
        }
    }

    fn xsetbv(&mut self) -> Outcome {
        let vcpu = &mut *self.vcpu;
        let value = vcpu.gpr(Gpr::Rdx) << 32 | vcpu.gpr(Gpr::Rax) & 0xffff_ffff;
        let is_allowed = vcpu.cpl() == 0 && vcpu.gpr(Gpr::Rcx) as u32 == 0 && vcpu.cr4() & cr4::OSXSAVE != 0;
        if !is_allowed || self.machine.cpuid.check_xcr0(value).is_err() {
            return raise(vcpu, Exception::GeneralProtection(0));
        }
        self.done(usual::XSETBV, |vcpu| vcpu.set_xcr0(value))
    }
}

fn kind_of(exit: &Exit) -> ExitKind {
    match exit {
        Exit::Cpuid => ExitKind::Cpuid,
        Exit::MsrRead => ExitKind::MsrRead,
        Exit::MsrWrite => ExitKind::MsrWrite,
        Exit::Port(_) => ExitKind::Port,
        Exit::MemoryFault(_) => ExitKind::Memory,
        Exit::Halt => ExitKind::Halt,
        Exit::InterruptWindow => ExitKind::InterruptWindow,
        Exit::HostInterrupt | Exit::HostNmi => ExitKind::HostInterrupt,
        Exit::Hypercall => ExitKind::Hypercall,
        _ => ExitKind::Other,
    }
}
