// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exceptions and interrupts on their way into the guest, and the exceptions that it leaves for.

use bitflags::bitflags;

/// Exceptions that handlers raise in the guest. The error code, where there is one, comes with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exception {
    /// #DB whose causes DR6 already has.
    Debug,
    /// #DB of a single step over an emulated instruction: DR6.BS is set with it.
    SingleStep,
    /// #DE: a division by zero, or one whose quotient does not fit.
    DivideError,
    /// #UD: the instruction does not exist here.
    InvalidOpcode,
    /// #SS with its error code.
    StackFault(u32),
    /// #GP with its error code.
    GeneralProtection(u32),
    /// #PF with its error code and the address for CR2.
    PageFault {
        /// The error code (AMD APM vol. 2, section 8.4.2).
        code: u32,
        /// The linear address that faulted.
        address: u64,
    },
    /// Another fault that the guest raised by itself, with its error code if it has one.
    Fault {
        /// The vector.
        vector: u8,
        /// The error code.
        code: Option<u32>,
    },
}

impl Exception {
    /// Returns whether it is a fault for certain: the instruction is executed again after it (AMD APM vol. 2, section
    /// 8.2). #DB can be either.
    pub const fn is_fault(self) -> bool {
        !matches!(self, Self::Debug | Self::SingleStep)
    }

    /// Its vector (AMD APM vol. 2, table 8-1).
    pub const fn vector(self) -> u8 {
        match self {
            Self::DivideError => vector::DE,
            Self::Debug | Self::SingleStep => vector::DB,
            Self::InvalidOpcode => vector::UD,
            Self::StackFault(_) => vector::SS,
            Self::GeneralProtection(_) => vector::GP,
            Self::PageFault { .. } => vector::PF,
            Self::Fault { vector, .. } => vector,
        }
    }

    /// The error code that its delivery pushes.
    pub const fn error_code(self) -> Option<u32> {
        match self {
            Self::StackFault(code) | Self::GeneralProtection(code) | Self::PageFault { code, .. } => Some(code),
            Self::Fault { code, .. } => code,
            Self::Debug | Self::SingleStep | Self::DivideError | Self::InvalidOpcode => None,
        }
    }

    /// The exception that a guest has raised by itself, as control blocks describe it: the vector, the error code where
    /// the vector has one, the linear address of a page fault. `None` for #MC, and for an NMI: neither is the guest's
    /// own.
    pub const fn raised(vector: u8, code: u32, address: u64) -> Option<Self> {
        Some(match vector {
            vector::DB => Self::Debug,
            vector::PF => Self::PageFault { code, address },
            vector::NMI | vector::MC => return None,
            vector if Exceptions::WITH_ERROR_CODE.has(vector) => Self::Fault { vector, code: Some(code) },
            vector => Self::Fault { vector, code: None },
        })
    }
}

/// An event that is injected into the guest at its next entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An external interrupt with its vector.
    Interrupt(u8),
    /// A non-maskable interrupt.
    Nmi,
    /// An exception.
    Exception(Exception),
}

/// Vectors by their exceptions' names (AMD APM vol. 2, table 8-1).
#[allow(missing_docs)]
pub mod vector {
    pub const DE: u8 = 0;
    pub const DB: u8 = 1;
    pub const NMI: u8 = 2;
    pub const UD: u8 = 6;
    pub const SS: u8 = 12;
    pub const GP: u8 = 13;
    pub const PF: u8 = 14;
    pub const MC: u8 = 18;
}

bitflags! {
    /// A set of exceptions, bit N for vector N: as SVM's intercepts and VMX's exception bitmap both have it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Exceptions: u32 {
        /// Division.
        const DE = 1 << 0;
        /// Debug.
        const DB = 1 << 1;
        /// BOUND.
        const BR = 1 << 5;
        /// Invalid opcode.
        const UD = 1 << 6;
        /// Device not available.
        const NM = 1 << 7;
        /// Double fault.
        const DF = 1 << 8;
        /// Invalid task state segment.
        const TS = 1 << 10;
        /// Segment not present.
        const NP = 1 << 11;
        /// Stack.
        const SS = 1 << 12;
        /// General protection.
        const GP = 1 << 13;
        /// Page fault.
        const PF = 1 << 14;
        /// x87 floating point.
        const MF = 1 << 16;
        /// Alignment check.
        const AC = 1 << 17;
        /// Machine check.
        const MC = 1 << 18;
        /// SIMD floating point.
        const XF = 1 << 19;
    }
}

impl Exceptions {
    /// The exceptions that every guest leaves for. Delivery of #DB and #AC can raise the same exception again, without
    /// end and without an instruction boundary at which the CPU would take an interrupt (CVE-2015-8104, CVE-2015-5307,
    /// XSA-156). With an exit for each, the host gets its CPU back; it puts the exception into the guest again. A
    /// machine check is the machine's, not the guest's that it interrupts.
    pub const ALWAYS: Self = Self::DB.union(Self::AC).union(Self::MC);

    /// Faults that a guest leaves for while one of its instructions is stepped over: their frames would show the trap
    /// flag. #AC is among [`Self::ALWAYS`]; #CP, #HV, #VC and #SX belong to features that no guest has.
    pub const FAULTS: Self = Self::DE
        .union(Self::BR)
        .union(Self::UD)
        .union(Self::NM)
        .union(Self::TS)
        .union(Self::NP)
        .union(Self::SS)
        .union(Self::GP)
        .union(Self::PF)
        .union(Self::MF)
        .union(Self::XF);

    /// Those that push an error code (AMD APM vol. 2, section 8.2).
    const WITH_ERROR_CODE: Self =
        Self::DF.union(Self::TS).union(Self::NP).union(Self::SS).union(Self::GP).union(Self::PF).union(Self::AC);

    /// Returns true if the exception with this vector is among them.
    const fn has(self, vector: u8) -> bool {
        vector < 32 && self.bits() & 1 << vector != 0
    }
}

#[cfg(test)]
#[path = "exception_tests.rs"]
mod tests;
