// SPDX-License-Identifier: MIT OR Apache-2.0
//! The causes of exits. No field of the VMCS is read that a cause does not need.

mod qualification;

use vm::addr::Gpa;
use vm::exit::{Exit, MemoryFault};
use vm::vcpu::vector;

use crate::event::{Interruption, kind};
use crate::field::{Field32, Field64, FieldNatural, Vmcs};
use crate::reason;

pub use qualification::{ApicAccess, ControlRegisterAccess, DebugRegisterAccess, TaskSwitch, TaskSwitchSource};

/// The cause of an exit: the guest's machine answers it, or VMX's own code does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The guest's machine answers it.
    Machine(Exit),
    /// The guest has raised #DB. Its causes are not in DR6 yet: [`crate::event::dr6`].
    Debug {
        /// Bits of DR6, all of them active high.
        causes: u64,
    },
    /// A physical NMI. The exit has taken it: the host's handler is to be called.
    Nmi,
    /// A physical interrupt, which the exit has acknowledged: the host's handler is to be called.
    Interrupt {
        /// Its vector.
        vector: u8,
    },
    /// An INIT signal, which the exit has taken.
    Init,
    /// The guest can take an NMI now.
    NmiWindow,
    /// The preemption timer has expired.
    TimerExpired,
    /// The guest has written a task priority below the threshold.
    TaskPriorityBelowThreshold,
    /// The guest is to access a control register that is not its own.
    ControlRegister(ControlRegisterAccess),
    /// The guest is to access a debug register.
    DebugRegister(DebugRegisterAccess),
    /// The guest is to switch tasks.
    TaskSwitch(TaskSwitch),
    /// The guest is to access its local APIC's page.
    ApicAccess(ApicAccess),
    /// The guest has written a register in its virtual-APIC page.
    ApicWrite {
        /// The register's offset.
        offset: u16,
    },
    /// The guest has ended an interrupt whose end the monitor had asked to see.
    EndOfInterrupt {
        /// The interrupt's vector.
        vector: u8,
    },
    /// An EPT entry has a value that no entry may have ([`crate::ept::check`]).
    Misconfiguration {
        /// The address whose translation met it.
        gpa: Gpa,
    },
    /// The page-modification log is full.
    ModificationLogFull,
    /// The guest has executed one instruction (monitor trap flag).
    MonitorTrap,
    /// The guest has locked the bus.
    BusLock,
    /// The VM entry has failed: the guest has not run.
    EntryFailed(EntryFailure),
}

/// The cause of a VM entry that failed after its checks of controls and host state (section 27.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryFailure {
    /// The guest's state: [`crate::entry::check`] names the rule.
    GuestState {
        /// The qualification: 2 the PDPTEs, 3 an NMI while STI blocks it, 4 the VMCS link pointer.
        qualification: u64,
    },
    /// The list of MSRs to be loaded.
    MsrLoading {
        /// Its entry, from 1.
        entry: u64,
    },
}

impl From<EntryFailure> for Exit {
    fn from(_: EntryFailure) -> Self {
        Self::EntryRefused
    }
}

/// Decodes the exit that a VMCS records.
pub fn decode(vmcs: &impl Vmcs) -> Cause {
    let code = vmcs.read_32(Field32::ExitReason);
    let number = code as u16;
    if code & reason::ENTRY_FAILED != 0 {
        return entry_failure(vmcs, code);
    }
    let cause = match number {
        reason::EXCEPTION_OR_NMI => Some(exception(vmcs, code)),
        reason::EXTERNAL_INTERRUPT => Some(external_interrupt(vmcs)),
        reason::IO => port_access(vmcs).map(Cause::Machine),
        reason::EPT_VIOLATION => Some(Cause::Machine(violation(vmcs))),
        reason::EPT_MISCONFIGURATION => Some(Cause::Misconfiguration { gpa: physical_address(vmcs) }),
        _ => instruction(number).map(Cause::Machine).or_else(|| plain(number)).or_else(|| qualified(vmcs, number)),
    };
    cause.unwrap_or(unknown(code))
}

/// VMX's own causes that their number alone describes.
fn plain(number: u16) -> Option<Cause> {
    Some(match number {
        reason::INIT => Cause::Init,
        reason::NMI_WINDOW => Cause::NmiWindow,
        reason::PREEMPTION_TIMER => Cause::TimerExpired,
        reason::TPR_BELOW_THRESHOLD => Cause::TaskPriorityBelowThreshold,
        reason::PML_FULL => Cause::ModificationLogFull,
        reason::MONITOR_TRAP_FLAG => Cause::MonitorTrap,
        reason::BUS_LOCK => Cause::BusLock,
        _ => return None,
    })
}

/// Causes that are described by the qualification.
fn qualified(vmcs: &impl Vmcs, number: u16) -> Option<Cause> {
    let qualification = || qualification(vmcs);
    match number {
        reason::CONTROL_REGISTER => control_register(qualification()),
        reason::DEBUG_REGISTER => Some(Cause::DebugRegister(DebugRegisterAccess::decode(qualification()))),
        reason::TASK_SWITCH => Some(Cause::TaskSwitch(TaskSwitch::decode(qualification()))),
        reason::APIC_ACCESS => ApicAccess::decode(qualification()).map(Cause::ApicAccess),
        reason::APIC_WRITE => Some(Cause::ApicWrite { offset: (qualification() & 0xfff) as u16 }),
        reason::VIRTUALIZED_EOI => Some(Cause::EndOfInterrupt { vector: qualification() as u8 }),
        _ => None,
    }
}

/// Causes that their number alone describes, and that the guest's machine answers.
fn instruction(number: u16) -> Option<Exit> {
    Some(match number {
        reason::CPUID => Exit::Cpuid,
        reason::RDMSR => Exit::MsrRead,
        reason::WRMSR => Exit::MsrWrite,
        reason::HLT => Exit::Halt,
        reason::INTERRUPT_WINDOW => Exit::InterruptWindow,
        reason::PAUSE => Exit::Pause,
        reason::VMCALL => Exit::Hypercall,
        reason::XSETBV => Exit::Xsetbv,
        reason::RDPMC => Exit::CounterRead,
        reason::RDTSC | reason::RDTSCP => Exit::ClockRead,
        reason::INVD | reason::WBINVD => Exit::CacheFlush,
        reason::TRIPLE_FAULT => Exit::Shutdown,
        reason::FIRST_VMX_INSTRUCTION..=reason::LAST_VMX_INSTRUCTION => Exit::AbsentInstruction,
        reason::INVEPT | reason::INVVPID | reason::VMFUNC | reason::GETSEC | reason::RSM => Exit::AbsentInstruction,
        reason::MONITOR | reason::MWAIT | reason::UMWAIT | reason::TPAUSE => Exit::AbsentInstruction,
        reason::ENCLS | reason::ENCLV | reason::PCONFIG | reason::LOADIWKEY => Exit::AbsentInstruction,
        reason::SEAMCALL | reason::TDCALL | reason::RDMSRLIST | reason::WRMSRLIST => Exit::AbsentInstruction,
        _ => return None,
    })
}

/// An exit that was never asked for; its number is the whole reason.
fn unknown(code: u32) -> Cause {
    Cause::Machine(Exit::Unknown { code: code.into() })
}

fn entry_failure(vmcs: &impl Vmcs, code: u32) -> Cause {
    match code as u16 {
        reason::ENTRY_FAILED_BY_GUEST_STATE => {
            Cause::EntryFailed(EntryFailure::GuestState { qualification: qualification(vmcs) })
        }
        reason::ENTRY_FAILED_BY_MSR => Cause::EntryFailed(EntryFailure::MsrLoading { entry: qualification(vmcs) }),
        reason::ENTRY_FAILED_BY_MACHINE_CHECK => Cause::Machine(Exit::MachineCheck),
        _ => unknown(code),
    }
}

/// An exception's qualification is the address of #PF, or the causes of #DB (section 28.2.1); the VMCS describes the
/// rest as an interruption (section 28.2.2).
fn exception(vmcs: &impl Vmcs, code: u32) -> Cause {
    let interruption = Interruption::from_bits(vmcs.read_32(Field32::ExitInterruptionInformation));
    let is_exception =
        matches!(interruption.kind(), kind::EXCEPTION | kind::SOFTWARE_EXCEPTION | kind::PRIVILEGED_EXCEPTION);
    match (interruption.is_valid(), interruption.kind(), interruption.vector()) {
        (true, kind::NMI, _) => Cause::Nmi,
        (true, _, vector::MC) if is_exception => Cause::Machine(Exit::MachineCheck),
        (true, _, vector::DB) if is_exception => Cause::Debug { causes: qualification(vmcs) & DEBUG_CAUSES },
        (true, _, vector @ ..32) if is_exception => {
            let has_code = interruption.has_error_code();
            let error = if has_code { vmcs.read_32(Field32::ExitInterruptionErrorCode) } else { 0 };
            let address = if vector == vector::PF { qualification(vmcs) } else { 0 };
            Cause::Machine(Exit::exception(vector, error, address, code.into()))
        }
        _ => unknown(code),
    }
}

/// B0 to B3, BLD, BD, BS, RTM (table 28-1).
const DEBUG_CAUSES: u64 = 0xf | 1 << 11 | 1 << 13 | 1 << 14 | 1 << 16;

/// The interrupt is described only if the exit has acknowledged it. Else it is still pending.
fn external_interrupt(vmcs: &impl Vmcs) -> Cause {
    let interruption = Interruption::from_bits(vmcs.read_32(Field32::ExitInterruptionInformation));
    match interruption.is_valid() {
        true => Cause::Interrupt { vector: interruption.vector() },
        false => Cause::Machine(Exit::HostInterrupt),
    }
}

fn port_access(vmcs: &impl Vmcs) -> Option<Exit> {
    let length = vmcs.read_32(Field32::ExitInstructionLength);
    let next_rip = vmcs.read_natural(FieldNatural::GuestRip).wrapping_add(length.into());
    qualification::port_access(qualification(vmcs), next_rip).map(Exit::Port)
}

fn violation(vmcs: &impl Vmcs) -> Exit {
    let (access, during_walk) = qualification::violation(qualification(vmcs));
    Exit::MemoryFault(MemoryFault { gpa: physical_address(vmcs), access, during_walk })
}

/// A MOV to CR8 is vendor-neutral; the rest are VMX's own.
fn control_register(qualification: u64) -> Option<Cause> {
    Some(match ControlRegisterAccess::decode(qualification)? {
        ControlRegisterAccess::Write { register: 8, source } => {
            Cause::Machine(Exit::TaskPriorityWrite { source: Some(source) })
        }
        own => Cause::ControlRegister(own),
    })
}

fn qualification(vmcs: &impl Vmcs) -> u64 {
    vmcs.read_natural(FieldNatural::ExitQualification)
}

fn physical_address(vmcs: &impl Vmcs) -> Gpa {
    Gpa(vmcs.read_64(Field64::GuestPhysicalAddress))
}

#[cfg(test)]
#[path = "exit_tests.rs"]
mod tests;
