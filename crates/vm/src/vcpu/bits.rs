// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bits of control, debug and flag registers.

use bitflags::bitflags;

bitflags! {
    /// RFLAGS bits that handlers check.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Rflags: u64 {
        /// Trap flag: single step.
        const TRAP = 1 << 8;
        /// Interrupts enabled.
        const INTERRUPT = 1 << 9;
        /// Direction: string instructions count down.
        const DIRECTION = 1 << 10;
        /// Nested task: IRET switches tasks.
        const NESTED_TASK = 1 << 14;
        /// Virtual-8086 mode.
        const VIRTUAL_8086 = 1 << 17;
        /// Alignment checks; with SMAP: supervisor code may access user pages.
        const ALIGNMENT_CHECK = 1 << 18;
        /// Resume flag.
        const RESUME = 1 << 16;
        const _ = !0;
    }
}

/// Control register 0 bits.
pub mod cr0 {
    /// Protected mode enable.
    pub const PE: u64 = 1 << 0;
    /// Extension type: always one.
    pub const ET: u64 = 1 << 4;
    /// Write protect.
    pub const WP: u64 = 1 << 16;
    /// Paging.
    pub const PG: u64 = 1 << 31;
}

/// Control register 4 bits.
pub mod cr4 {
    /// Page size extension.
    pub const PSE: u64 = 1 << 4;
    /// Physical address extension.
    pub const PAE: u64 = 1 << 5;
    /// RDPMC in user mode.
    pub const PCE: u64 = 1 << 8;
    /// Five-level paging.
    pub const LA57: u64 = 1 << 12;
    /// XSAVE enabled by the operating system.
    pub const OSXSAVE: u64 = 1 << 18;
    /// Supervisor mode access prevention.
    pub const SMAP: u64 = 1 << 21;
}

/// Debug status register bits (AMD APM vol. 2, section 13.1.1.3).
pub mod dr6 {
    /// Breakpoints 0 to 3.
    pub const BREAKPOINTS: u64 = 0xf;
    /// A debug register was accessed.
    pub const BD: u64 = 1 << 13;
    /// Single step.
    pub const BS: u64 = 1 << 14;
    /// A task switch.
    pub const BT: u64 = 1 << 15;
}

/// EFER bits.
pub mod efer {
    /// SYSCALL enable.
    pub const SCE: u64 = 1 << 0;
    /// Long mode enable.
    pub const LME: u64 = 1 << 8;
    /// Long mode active.
    pub const LMA: u64 = 1 << 10;
    /// No-execute enable.
    pub const NXE: u64 = 1 << 11;
    /// Secure virtual machine enable: never visible to a guest.
    pub const SVME: u64 = 1 << 12;
    /// Fast FXSAVE/FXRSTOR.
    pub const FFXSR: u64 = 1 << 14;
}
