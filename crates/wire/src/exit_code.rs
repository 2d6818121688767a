// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exit codes: the report of a host in the lab to its emulator about its end.
//!
//! QEMU's `isa-debug-exit` device ends the emulator with status `(value << 1) | 1` once `value` is written to its port.
//! Host and lab share the values here. A status that is none of these is the emulator's own: 0 for a machine that
//! powered itself off, 1 for a bad command line, a signal's number for a killed one.

/// The I/O port of the device, four bytes wide.
pub const DEBUG_EXIT_PORT: u16 = 0xf4;

/// The host's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum ExitCode {
    /// Everything asked of it was done.
    Success = 0x10,
    /// It could not do what was asked (a guest failed, the bundle is bad); the log has the reason.
    Failed = 0x11,
    /// It panicked; the log shows where.
    Panicked = 0x12,
}

impl ExitCode {
    /// All there are.
    pub const ALL: [Self; 3] = [Self::Success, Self::Failed, Self::Panicked];

    /// Returns what the host writes to [`DEBUG_EXIT_PORT`].
    pub const fn port_value(self) -> u32 {
        self as u32
    }

    /// Returns the emulator's exit status for it.
    pub const fn process_status(self) -> i32 {
        ((self as i32) << 1) | 1
    }

    /// Returns the code behind an emulator's exit status, where it is one of these.
    pub fn from_process_status(status: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.process_status() == status)
    }
}
