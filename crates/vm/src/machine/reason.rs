// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reasons in words, for the operator.

use core::fmt;

use super::{Fault, Stop};

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
            Self::UnknownExit(code) => write!(f, "its CPU left for an unknown reason, {code:#x}"),
        }
    }
}
