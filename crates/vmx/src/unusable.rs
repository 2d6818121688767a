// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reasons why a CPU's VMX cannot be used.

use core::fmt;

use crate::control::{Control, Word};
use crate::msr::name;

/// A reason why a CPU's VMX cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// Firmware has locked IA32_FEATURE_CONTROL with VMX disabled.
    DisabledByFirmware,
    /// A control is needed that the CPU does not allow to be 1.
    Missing {
        /// The control.
        control: Control,
        /// The MSR that states it.
        msr: u32,
    },
    /// A control is not to be 1, and the CPU requires it, or so does the request.
    Forced {
        /// The control.
        control: Control,
        /// The MSR that states it.
        msr: u32,
    },
    /// A feature without a control of its own is needed.
    Lacks {
        /// The feature.
        feature: &'static str,
        /// The MSR that states it.
        msr: u32,
    },
    /// One MSR requires a bit to be 1 that it, or another one, does not allow to be; or they differ in what may be 1.
    Contradiction {
        /// One MSR.
        msr: u32,
        /// The other, or the same again.
        other: u32,
        /// The bit, counted in the word of controls or in the control register.
        bit: u32,
    },
}

impl Unusable {
    /// The MSR that states it.
    pub const fn msr(&self) -> u32 {
        match *self {
            Self::DisabledByFirmware => crate::msr::FEATURE_CONTROL,
            Self::Missing { msr, .. } | Self::Forced { msr, .. } => msr,
            Self::Lacks { msr, .. } | Self::Contradiction { msr, .. } => msr,
        }
    }
}

/// The remedy for what a CPU lacks: it can be an older one, or an outer hypervisor's.
const OTHER_CPU: &str = "take a CPU that has it, or have the hypervisor outside this machine offer it";

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let msr = self.msr();
        write!(f, "VMX: ")?;
        match *self {
            Self::DisabledByFirmware => write!(f, "disabled by the firmware")?,
            Self::Missing { control, .. } => write!(f, "no {}", Quoted(control))?,
            Self::Forced { control, .. } => write!(f, "{} cannot be cleared", Quoted(control))?,
            Self::Lacks { feature, .. } => write!(f, "no {feature}")?,
            Self::Contradiction { bit, .. } => write!(f, "bit {bit} is required and refused")?,
        }
        write!(f, " ({}, {msr:#x}", name(msr))?;
        match *self {
            Self::DisabledByFirmware => write!(f, ", is locked): enable virtualization (VT-x) in its set-up"),
            Self::Contradiction { other, .. } if other != msr => {
                write!(f, ", and {}, {other:#x}): update firmware and microcode", name(other))
            }
            Self::Contradiction { .. } => write!(f, "): update firmware and microcode"),
            _ => write!(f, "): {OTHER_CPU}"),
        }
    }
}

impl core::error::Error for Unusable {}

/// A control's name and its word.
struct Quoted(Control);

impl fmt::Display for Quoted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.0.word() {
            Word::Exit => "VM-exit",
            Word::Entry => "VM-entry",
            Word::Pin | Word::Primary | Word::Secondary | Word::Tertiary => "VM-execution",
        };
        write!(f, "{kind} control \"{}\"", self.0.name())
    }
}
