// SPDX-License-Identifier: MIT OR Apache-2.0
//! A bank's status register (AMD APM vol. 2, section 9.3.2.2; Intel SDM vol. 3, section 16.3.2.2).

use core::fmt;

/// The value of an MCi_STATUS register.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Status(pub u64);

impl Status {
    /// The bank holds an error.
    pub const VALID: u64 = 1 << 63;
    /// At least one more error came, and was not recorded.
    pub const OVERFLOW: u64 = 1 << 62;
    /// The hardware did not correct the error.
    pub const UNCORRECTED: u64 = 1 << 61;
    /// The error's reporting by #MC was enabled.
    pub const ENABLED: u64 = 1 << 60;
    /// The bank's MISC register is valid.
    pub const MISC_VALID: u64 = 1 << 59;
    /// The bank's ADDR register is valid.
    pub const ADDRESS_VALID: u64 = 1 << 58;
    /// The CPU's own state may be corrupt.
    pub const CONTEXT_CORRUPT: u64 = 1 << 57;
    /// Intel: the error was signalled by #MC.
    pub const SIGNALLED: u64 = 1 << 56;
    /// Intel: software must act before the context resumes. AMD: the state of the interrupted context may be corrupt
    /// (TCC).
    pub const ACTION_REQUIRED: u64 = 1 << 55;
    /// AMD's name for the same bit.
    pub const TASK_CORRUPT: u64 = 1 << 55;
    /// AMD: the error was marked in the data (poison), and they have not been used yet.
    pub const DEFERRED: u64 = 1 << 44;

    /// Returns whether all of `flags` are set.
    pub const fn has(self, flags: u64) -> bool {
        self.0 & flags == flags
    }

    /// The error code, bits 15 to 0.
    pub const fn code(self) -> u16 {
        self.0 as u16
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Status({:#018x})", self.0)
    }
}
