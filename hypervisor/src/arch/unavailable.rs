// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reasons why guests cannot run, or one more cannot, whatever the vendor's extension ([`super::virt`]).

use core::fmt;

/// The reason for which guests cannot run on a CPU; the host itself can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unavailable {
    /// No extension that this hypervisor knows.
    NoExtension,
    /// The firmware has disabled AMD's and locked it.
    LockedByFirmware,
    /// AMD's has no nested paging.
    NoNestedPaging,
    /// Intel's is disabled, or lacks something.
    #[cfg(feature = "intel")]
    Vmx(vmx::Unusable),
    /// The CPU has refused to enable a feature that it reports.
    #[cfg(feature = "intel")]
    Refused,
    /// Memory for what the CPU has for itself ran out.
    OutOfMemory,
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            #[cfg(feature = "intel")]
            Self::Vmx(unusable) => return write!(f, "no guest can run: {unusable}"),
            #[cfg(not(feature = "intel"))]
            Self::NoExtension => {
                "this CPU has no AMD SVM, so no guest can run: use one that has it (in QEMU: -cpu max); this image has \
                 no support for Intel VMX"
            }
            #[cfg(feature = "intel")]
            Self::NoExtension => {
                "this CPU has no AMD SVM and no Intel VMX, so no guest can run: use one that has one of them (in QEMU: \
                 -cpu max)"
            }
            #[cfg(feature = "intel")]
            Self::Refused => {
                "this CPU refuses to enable VMX (VMXON fails), so no guest can run on it: update firmware and microcode"
            }
            Self::LockedByFirmware => "AMD SVM is disabled by the firmware: enable it in the firmware's set-up",
            Self::NoNestedPaging => {
                "this CPU's SVM has no nested paging, so no guest can run: use one that has it (in QEMU: -cpu \
                 max)"
            }
            Self::OutOfMemory => "no memory left for this CPU's save area: give the host more memory",
        })
    }
}

/// No host memory left for tables or control blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory;
