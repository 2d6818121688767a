// SPDX-License-Identifier: MIT OR Apache-2.0
//! The local APIC's registers, in whichever mode it is.

use core::sync::atomic::{AtomicBool, Ordering};

use crate::arch::{address, cpu};

/// The address at which the register page is mapped in xAPIC mode.
pub const MAPPED_AT: u64 = address::DEVICES;

pub const MSR_APIC_BASE: u32 = 0x1b;
pub const APIC_BASE_ENABLE: u64 = 1 << 11;
pub const APIC_BASE_X2APIC: u64 = 1 << 10;
pub const MSR_X2APIC: u32 = 0x800;

/// Registers by their xAPIC offset; the x2APIC's number is the offset divided by 16.
pub mod number {
    pub const ID: u32 = 0x20;
    pub const TASK_PRIORITY: u32 = 0x80;
    pub const END_OF_INTERRUPT: u32 = 0xb0;
    pub const SPURIOUS: u32 = 0xf0;
    /// The first of eight.
    pub const IN_SERVICE: u32 = 0x100;
    /// The first of eight.
    #[cfg(feature = "faults")]
    pub const REQUESTED: u32 = 0x200;
    pub const COMMAND_LOW: u32 = 0x300;
    pub const COMMAND_HIGH: u32 = 0x310;
    pub const LVT_TIMER: u32 = 0x320;
    pub const LVT_COUNTERS: u32 = 0x340;
    pub const LVT_LINT0: u32 = 0x350;
    pub const LVT_LINT1: u32 = 0x360;
    pub const LVT_ERROR: u32 = 0x370;
    pub const TIMER_INITIAL: u32 = 0x380;
    pub const TIMER_CURRENT: u32 = 0x390;
    pub const TIMER_DIVIDE: u32 = 0x3e0;
}

static IS_X2APIC: AtomicBool = AtomicBool::new(false);

/// The mode that the operator wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Memory-mapped registers.
    Xapic,
    /// Registers as MSRs.
    X2apic,
}

/// The mode in use.
pub fn mode() -> Mode {
    if IS_X2APIC.load(Ordering::Relaxed) { Mode::X2apic } else { Mode::Xapic }
}

/// Sets the mode for all CPUs. Before any register is used.
pub fn set_mode(mode: Mode) {
    IS_X2APIC.store(mode == Mode::X2apic, Ordering::Relaxed);
}

#[inline]
pub fn read(offset: u32) -> u32 {
    if IS_X2APIC.load(Ordering::Relaxed) {
        // SAFETY: only registers that exist in x2APIC mode are read here, without side effects.
        unsafe { cpu::read_msr(MSR_X2APIC + offset / 16) as u32 }
    } else {
        // SAFETY: the register page is mapped uncached at this address.
        unsafe { core::ptr::read_volatile((MAPPED_AT + u64::from(offset)) as *const u32) }
    }
}

#[inline]
pub fn write(offset: u32, value: u32) {
    if IS_X2APIC.load(Ordering::Relaxed) {
        // SAFETY: only registers that exist in x2APIC mode are written here, with values they take.
        unsafe { cpu::write_msr(MSR_X2APIC + offset / 16, u64::from(value)) };
    } else {
        // SAFETY: the register page is mapped uncached at this address.
        unsafe { core::ptr::write_volatile((MAPPED_AT + u64::from(offset)) as *mut u32, value) };
    }
}
