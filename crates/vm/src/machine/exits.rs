// SPDX-License-Identifier: MIT OR Apache-2.0
//! The one `match` over why a CPU left its guest.

use super::registers::RegisterBus;
use super::{Activity, Cpu, ExitKind, Fault, Host, Machine, Outcome, Stop};
use crate::cpu::cpuid::CpuidView;
use crate::devices::lapic::Mode;
use crate::exit::{Exit, MemoryAccess, MemoryFault, PortAccess};
use crate::machine::emulate::{self, Refused};
use crate::machine::instruction::{self, Usual};
use crate::memory::GuestMemory;
use crate::vcpu::{Event, Exception, Gpr, Rflags, VcpuState, cr4};

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

/// What KVM returns for a hypercall that it does not have.
const NO_SUCH_HYPERCALL: u64 = -1000i64 as u64;

impl<M: GuestMemory> Machine<M> {
    /// Answers an exit.
    #[inline]
    pub fn handle(&self, exit: Exit, vcpu: &mut impl VcpuState, cpu: &mut Cpu, host: &mut impl Host) -> Outcome {
        cpu.exits.count(kind_of(&exit));
        let exit = match cpu.step {
            None => exit,
            Some(_) => match cpu.end_step(exit, vcpu) {
                Some(exit) => exit,
                None => return Outcome::Resume,
            },
        };
        let rip = vcpu.rip();
        let outcome = self.answer(exit, vcpu, cpu, host);
        if vcpu.rflags().contains(Rflags::TRAP) {
            trap(&exit, rip, cpu, vcpu);
        }
        outcome
    }

    #[inline]
    fn answer(&self, exit: Exit, vcpu: &mut impl VcpuState, cpu: &mut Cpu, host: &mut impl Host) -> Outcome {
        match exit {
            Exit::Cpuid => self.cpuid(vcpu, cpu),
            Exit::MsrRead => self.msr_read(vcpu, cpu, host),
            Exit::MsrWrite => self.msr_write(vcpu, cpu, host),
            Exit::Port(access) => self.port(vcpu, cpu, host, &access),
            Exit::MemoryFault(fault) => self.memory_fault(vcpu, cpu, host, &fault),
            Exit::Halt => self.halt(vcpu, cpu),
            Exit::InterruptWindow => Outcome::Resume,
            Exit::InterruptReturn => {
                cpu.nmi.note_return(vcpu.rip());
                vcpu.watch_interrupt_return(false);
                Outcome::Resume
            }
            Exit::Pause => match self.done(vcpu, usual::PAUSE, |_| ()) {
                Outcome::Resume => Outcome::Yield,
                other => other,
            },
            Exit::HostInterrupt | Exit::HostNmi => self.host_interrupt(vcpu, cpu),
            Exit::Exception(exception) => cpu.raise_again(vcpu, exception),
            Exit::MachineCheck => Outcome::MachineCheck,
            Exit::Hypercall => self.hypercall(vcpu),
            Exit::Xsetbv => self.xsetbv(vcpu),
            Exit::TaskPriorityWrite => match emulate::write_task_priority(vcpu, &self.memory) {
                Ok(()) => Outcome::Resume,
                Err(refused) => self.refuse(vcpu, cpu, refused),
            },
            Exit::ClockRead => self.clock_read(vcpu, cpu),
            Exit::CounterRead => self.counter_read(vcpu, cpu),
            Exit::AbsentInstruction => raise(vcpu, Exception::InvalidOpcode),
            Exit::CacheFlush => self.done(vcpu, usual::WBINVD, |_| ()),
            Exit::Shutdown => Outcome::Stop(Stop::TripleFault),
            Exit::EntryRefused => Outcome::Stop(Stop::Fault(Fault::BadState(vcpu.refusal()))),
            Exit::Unknown { code } => Outcome::Stop(Stop::Fault(Fault::UnknownExit(code))),
        }
    }

    #[inline]
    fn cpuid(&self, vcpu: &mut impl VcpuState, cpu: &Cpu) -> Outcome {
        let has_no_apic = cpu.lapic.mode() == Mode::Disabled;
        let view = CpuidView { apic_id: cpu.lapic.id(), cr4: vcpu.cr4(), xcr0: vcpu.xcr0(), has_no_apic };
        let leaf = vcpu.gpr(Gpr::Rax) as u32;
        let subleaf = vcpu.gpr(Gpr::Rcx) as u32;
        let answer = self.cpuid.lookup(leaf, subleaf, &view);
        self.done(vcpu, usual::CPUID, |vcpu| {
            vcpu.set_gpr(Gpr::Rax, answer.eax.into());
            vcpu.set_gpr(Gpr::Rbx, answer.ebx.into());
            vcpu.set_gpr(Gpr::Rcx, answer.ecx.into());
            vcpu.set_gpr(Gpr::Rdx, answer.edx.into());
        })
    }

    fn port(&self, vcpu: &mut impl VcpuState, cpu: &mut Cpu, host: &mut impl Host, access: &PortAccess) -> Outcome {
        if access.is_string {
            return self.port_string(vcpu, cpu, host, access);
        }
        let mut stop = None;
        let value = vcpu.gpr(Gpr::Rax) as u32 & access.size.mask() as u32;
        let answer = self.port_access(cpu, host, access, value, &mut stop);
        if access.is_in {
            emulate::write_register(vcpu, Gpr::Rax, access.size, answer.into());
        }
        vcpu.set_rip(access.next_rip);
        stop.map_or(Outcome::Resume, Outcome::Stop)
    }

    /// One step of INS or OUTS. Its operand may be memory, device registers, or both.
    fn port_string(
        &self,
        vcpu: &mut impl VcpuState,
        cpu: &mut Cpu,
        host: &mut impl Host,
        access: &PortAccess,
    ) -> Outcome {
        cpu.is_executed_again = false;
        let step = match emulate::port_string(vcpu, &self.memory, access) {
            Ok(Some(step)) => step,
            Ok(None) => return Outcome::Resume,
            Err(refused) => return self.refuse(vcpu, cpu, refused),
        };
        cpu.sync_apic(vcpu, &self.memory);
        let mut stop = None;
        if access.is_in {
            let value = self.port_access(cpu, host, access, 0, &mut stop);
            step.store(&self.memory, &mut RegisterBus { machine: self, cpu, host, stop: &mut stop }, value.into());
        } else {
            let value = step.load(&self.memory, &mut RegisterBus { machine: self, cpu, host, stop: &mut stop });
            self.port_access(cpu, host, access, value as u32, &mut stop);
        }
        vcpu.set_task_priority(cpu.lapic.task_priority());
        step.finish(vcpu);
        stop.map_or(Outcome::Resume, Outcome::Stop)
    }

    fn memory_fault(
        &self,
        vcpu: &mut impl VcpuState,
        cpu: &mut Cpu,
        host: &mut impl Host,
        fault: &MemoryFault,
    ) -> Outcome {
        if fault.during_walk {
            return Outcome::Stop(Stop::Fault(Fault::PageTables(fault.gpa)));
        }
        if fault.access == MemoryAccess::Execute {
            // Nothing drives the bus there: a CPU fetches all ones, which is no instruction.
            return raise(vcpu, Exception::InvalidOpcode);
        }
        if vcpu.was_delivering() {
            // It was not the instruction at RIP that touched the address, but the delivery of that event.
            return Outcome::Stop(Stop::Fault(Fault::Delivery(fault.gpa)));
        }
        cpu.is_executed_again = false;
        cpu.sync_apic(vcpu, &self.memory);
        let decoded = emulate::decode(vcpu, &self.memory, &mut cpu.recent);
        let mut stop = None;
        let mut bus = RegisterBus { machine: self, cpu, host, stop: &mut stop };
        let carried_out = decoded.and_then(|access| emulate::access(vcpu, &self.memory, fault.gpa, &access, &mut bus));
        let outcome = match carried_out {
            Ok(()) => stop.map_or(Outcome::Resume, Outcome::Stop),
            Err(refused) => self.refuse(vcpu, cpu, refused),
        };
        vcpu.set_task_priority(cpu.lapic.task_priority());
        outcome
    }

    fn halt(&self, vcpu: &mut impl VcpuState, cpu: &mut Cpu) -> Outcome {
        let is_masked = !vcpu.rflags().contains(Rflags::INTERRUPT);
        if let Err(exception) = instruction::skip(vcpu, &self.memory, usual::HLT) {
            return raise(vcpu, exception);
        }
        let is_single_stepped = vcpu.rflags().contains(Rflags::TRAP);
        if is_single_stepped || cpu.nmi.is_pending() && cpu.nmi.is_open(vcpu.rip()) {
            return Outcome::Resume;
        }
        self.set_activity(cpu, if is_masked { Activity::HaltedForGood } else { Activity::Halted });
        if self.is_anyone_alive() { Outcome::Idle } else { Outcome::Stop(Stop::Fault(Fault::HaltedForever)) }
    }

    /// The guest was interrupted for the host. If that was between its STI and the HLT that it shadows, the HLT is
    /// carried out here: an interrupt must not come between the two, and not every CPU keeps the shadow across an
    /// entry (the one that QEMU 7.2 emulates does not), so that the guest would sleep through what was to wake it.
    fn host_interrupt(&self, vcpu: &mut impl VcpuState, cpu: &mut Cpu) -> Outcome {
        if vcpu.is_in_interrupt_shadow()
            && vcpu.rflags().contains(Rflags::INTERRUPT)
            && !vcpu.event_pending()
            && instruction::skip_if(vcpu, &self.memory, usual::HLT)
        {
            self.set_activity(cpu, Activity::Halted);
        }
        Outcome::HostInterrupt
    }

    /// No hypercall is offered; KVM's answer keeps callers that try anyway going.
    fn hypercall(&self, vcpu: &mut impl VcpuState) -> Outcome {
        self.done(vcpu, usual::VMMCALL, |vcpu| vcpu.set_gpr(Gpr::Rax, NO_SUCH_HYPERCALL))
    }

    fn xsetbv(&self, vcpu: &mut impl VcpuState) -> Outcome {
        let value = vcpu.gpr(Gpr::Rdx) << 32 | vcpu.gpr(Gpr::Rax) & 0xffff_ffff;
        let is_allowed = vcpu.cpl() == 0 && vcpu.gpr(Gpr::Rcx) as u32 == 0 && vcpu.cr4() & cr4::OSXSAVE != 0;
        if !is_allowed || self.cpuid.check_xcr0(value).is_err() {
            return raise(vcpu, Exception::GeneralProtection(0));
        }
        self.done(vcpu, usual::XSETBV, |vcpu| vcpu.set_xcr0(value))
    }

    fn refuse(&self, vcpu: &mut impl VcpuState, cpu: &mut Cpu, refused: Refused) -> Outcome {
        match refused {
            Refused::Exception(exception) => raise(vcpu, exception),
            Refused::Changed => {
                cpu.is_executed_again = true;
                Outcome::Resume
            }
            Refused::Unsupported(_) => match instruction::fetch(vcpu, &self.memory) {
                Ok(bytes) => {
                    let whole = instruction::decode(vcpu, &bytes).map_or(bytes, |found| bytes.of_instruction(&found));
                    Outcome::Stop(Stop::Fault(Fault::Instruction(whole)))
                }
                Err(exception) => raise(vcpu, exception),
            },
        }
    }

    /// The instruction has been carried out: goes past it and puts its results in place, or raises what its
    /// disappearance deserves.
    #[inline]
    pub(super) fn done<V: VcpuState>(&self, vcpu: &mut V, usual: Usual, results: impl FnOnce(&mut V)) -> Outcome {
        match instruction::skip(vcpu, &self.memory, usual) {
            Ok(()) => {
                results(vcpu);
                Outcome::Resume
            }
            Err(exception) => raise(vcpu, exception),
        }
    }
}

/// Gives the guest an exception; one that an exit interrupted has been delivered then. RFLAGS.RF of a fault's frame is
/// set, so that a breakpoint on the instruction does not come twice (AMD APM vol. 2, section 3.1.6).
pub(super) fn raise(vcpu: &mut impl VcpuState, exception: Exception) -> Outcome {
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
    /// section
    /// 8.2.9): raised while another event was being delivered, they make no double fault. They go before that event:
    /// its instruction raises an exception again, an interrupt or NMI waits for its turn.
    #[cold]
    fn raise_again(&mut self, vcpu: &mut impl VcpuState, exception: Exception) -> Outcome {
        if let Some(vector) = vcpu.withdraw_interrupt() {
            self.lapic.take_back(vector);
        }
        if vcpu.drop_event() {
            self.nmi.take_back();
            vcpu.watch_interrupt_return(false);
        }
        raise(vcpu, exception)
    }
}

/// The guest single-steps (RFLAGS.TF). An instruction that was carried out here, or one step of a repeated one, is
/// followed by the trap with which the CPU would have ended it (AMD APM vol. 2, section 13.1.4).
#[cold]
fn trap(exit: &Exit, rip_before: u64, cpu: &Cpu, vcpu: &mut impl VcpuState) {
    let may_repeat = matches!(exit, Exit::MemoryFault(_) | Exit::Port(PortAccess { is_string: true, .. }));
    let is_done = vcpu.rip() != rip_before || may_repeat && !cpu.is_executed_again;
    if is_done && !vcpu.event_pending() {
        vcpu.inject(Event::Exception(Exception::SingleStep));
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
