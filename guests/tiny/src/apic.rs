// SPDX-License-Identifier: MIT OR Apache-2.0
//! The local APIC, by model-specific registers (x2APIC) or by its page (xAPIC), whichever the CPU has (Intel SDM
//! vol. 3, chapter 11; AMD APM vol. 2, chapter 16).

use crate::cpu::{cpuid, read_memory, read_msr, write_memory, write_msr};
use core::sync::atomic::{AtomicBool, Ordering};

const BASE: u32 = 0x1b;
const BASE_ENABLE: u64 = 1 << 11;
const BASE_X2APIC: u64 = 1 << 10;
/// The register page.
pub const PAGE: u64 = 0xfee0_0000;
/// The first register's MSR in x2APIC mode.
pub const FIRST_MSR: u32 = 0x800;
/// x2APIC's self-IPI register.
pub const SELF_IPI_MSR: u32 = 0x83f;
/// TSC deadline (Intel SDM vol. 3, section 11.5.4.1).
pub const TSC_DEADLINE_MSR: u32 = 0x6e0;

/// A register, by its number (offset in the page / 16; MSR − 0x800).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // The manual's names.
pub enum Register {
    Identifier = 0x02,
    Version = 0x03,
    TaskPriority = 0x08,
    EndOfInterrupt = 0x0b,
    LogicalDestination = 0x0d,
    DestinationFormat = 0x0e,
    SpuriousVector = 0x0f,
    ErrorStatus = 0x28,
    InterruptCommand = 0x30,
    InterruptCommandHigh = 0x31,
    Timer = 0x32,
    Performance = 0x34,
    TimerInitialCount = 0x38,
    TimerDivide = 0x3e,
}

static IS_X2APIC: AtomicBool = AtomicBool::new(false);

/// Interrupt command: delivery mode INIT, asserted.
pub const INIT: u32 = 5 << 8 | 1 << 14;
/// Interrupt command: delivery mode start-up; the vector is the page.
pub const STARTUP: u32 = 6 << 8 | 1 << 14;
/// Interrupt command: delivery mode NMI.
pub const NMI: u32 = 4 << 8;
/// Interrupt command: the destination is logical.
pub const LOGICAL: u32 = 1 << 11;

/// Turns the local APIC on, as x2APIC where there is one.
pub fn enable() {
    IS_X2APIC.store(cpuid(1)[2] & 1 << 21 != 0, Ordering::Relaxed);
    enable_here();
}

/// Turns the local APIC on, with its registers in memory.
pub fn enable_in_memory() {
    IS_X2APIC.store(false, Ordering::Relaxed);
    enable_here();
}

/// Turns another CPU's local APIC on, in the same mode.
pub fn enable_here() {
    let base = read_msr(BASE) | BASE_ENABLE;
    write_msr(BASE, if is_x2apic() { base | BASE_X2APIC } else { base });
    write(Register::SpuriousVector, 0x1ff);
    write(Register::TaskPriority, 0);
}

/// Returns whether it is in x2APIC mode.
pub fn is_x2apic() -> bool {
    IS_X2APIC.load(Ordering::Relaxed)
}

/// Reads a register.
pub fn read(register: Register) -> u32 {
    if is_x2apic() { read_msr(FIRST_MSR + register as u32) as u32 } else { read_memory(PAGE + (register as u64) * 16) }
}

/// Writes a register.
pub fn write(register: Register, value: u32) {
    if is_x2apic() {
        write_msr(FIRST_MSR + register as u32, value.into());
    } else {
        write_memory(PAGE + (register as u64) * 16, value);
    }
}

/// Sends an interrupt: the low half of the interrupt command register, and the destination (32 bits in x2APIC mode,
/// else 8).
pub fn send(destination: u32, command: u32) {
    if is_x2apic() {
        let command = u64::from(destination) << 32 | u64::from(command);
        write_msr(FIRST_MSR + Register::InterruptCommand as u32, command);
    } else {
        write(Register::InterruptCommandHigh, destination << 24);
        write(Register::InterruptCommand, command);
    }
}

/// Sends this CPU an interrupt: the low half of the interrupt command register, with the `self` shorthand.
pub fn send_self(command: u32) {
    const SHORTHAND_SELF: u32 = 1 << 18;
    write(Register::InterruptCommand, command | SHORTHAND_SELF);
}

/// Sends this CPU a non-maskable interrupt (the shorthand is for fixed interrupts only, so by identifier).
pub fn send_self_nmi() {
    let identifier = read(Register::Identifier);
    send(if is_x2apic() { identifier } else { identifier >> 24 }, NMI);
}
