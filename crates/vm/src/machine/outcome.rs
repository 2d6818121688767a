// SPDX-License-Identifier: MIT OR Apache-2.0
//! The outcome of an exit for its vCPU, and the reasons for a guest's end, in text for the operator.

use core::fmt;

use super::instruction::Bytes;
use crate::addr::Gpa;
use crate::vcpu::Refusal;

/// The outcome of an exit for its vCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It runs on.
    Resume,
    /// It waits for an interrupt.
    Idle,
    /// It runs on, but by another way in and out: whether its time is counted (see
    /// [`crate::vcpu::VcpuState::count_time`]) or its SPEC_CTRL has changed.
    CountsOtherwise,
    /// It spins, and runs on: it had better yield to the CPU that it waits for.
    Yield,
    /// The hypervisor has to check its own interrupts; then it runs on.
    HostInterrupt,
    /// It has touched memory on demand: the hypervisor shows it the memory, and it executes the instruction again.
    Touched(Gpa),
    /// The hypervisor has to handle a machine check, and to decide whether the guest runs on.
    MachineCheck,
    /// The guest ends.
    Stop(Stop),
}

/// The reason for a guest's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It powered off.
    PowerOff,
    /// It wants to start again.
    Reset,
    /// It wrote this to the debug-exit port.
    DebugExit(u32),
    /// It faulted while it handled a fault while it handled a fault.
    TripleFault,
    /// It cannot go on: see the reason.
    Fault(Fault),
}

/// An action of a guest that no machine answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Its CPU state is one that cannot run, for this reason if it is known.
    BadState(Option<Refusal>),
    /// It used an instruction on a device's registers that this hypervisor does not carry out.
    Instruction(Bytes),
    /// Its page tables lead to an address where there is no memory.
    PageTables(Gpa),
    /// An exception or interrupt could not be delivered: the guest's descriptor tables or its stack are at this
    /// address, where there is no memory.
    Delivery(Gpa),
    /// It halted with interrupts disabled: nothing can wake it.
    HaltedForever,
    /// It switched tasks by hardware (a task gate, or a far jump to a task state segment), which this CPU's extension
    /// leaves to the hypervisor.
    TaskSwitch,
    /// An exit that was never asked for, with the extension's number.
    UnknownExit(u64),
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PowerOff => f.write_str("powered off"),
            Self::Reset => f.write_str("reset by the guest"),
            Self::DebugExit(code) => write!(f, "debug exit with code {code:#x}"),
            Self::TripleFault => f.write_str("triple fault: its handler for a double fault faulted"),
            Self::Fault(fault) => fault.fmt(f),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadState(None) => f.write_str("its CPU is in a state that cannot run"),
            Self::BadState(Some(reason)) => write!(f, "its CPU is in a state that cannot run: {reason}"),
            Self::Instruction(bytes) => {
                write!(f, "it used an instruction on device registers that is not supported: {:02x?}", bytes.as_slice())
            }
            Self::PageTables(gpa) => write!(f, "its page tables are at {gpa}, where it has no memory"),
            Self::Delivery(gpa) => {
                write!(f, "its interrupt table, descriptor tables or stack are at {gpa}, where it has no memory")
            }
            Self::HaltedForever => f.write_str("it halted with interrupts off: nothing can wake it"),
            Self::TaskSwitch => f.write_str(
                "it switches tasks by hardware, which is not emulated where the CPU does not do it in a guest",
            ),
            Self::UnknownExit(code) => write!(f, "its CPU left for an unknown reason, {code:#x}"),
        }
    }
}
