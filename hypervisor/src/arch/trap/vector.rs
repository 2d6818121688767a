// SPDX-License-Identifier: MIT OR Apache-2.0
//! Vectors of the host's interrupts.

/// The non-maskable interrupt.
pub const NMI: u8 = 2;
/// A machine check.
pub const MACHINE_CHECK: u8 = 18;
/// The local APIC's timer.
pub const TIMER: u8 = 0x40;
/// Another CPU has work for this one.
pub const WAKE: u8 = 0x41;
/// A vCPU of this CPU has a pending interrupt in its mailbox.
pub const KICK: u8 = 0x43;
/// The control channel's UART.
pub const CONTROL_UART: u8 = 0x42;
/// The log's self-test.
#[cfg(feature = "faults")]
pub const LOG_SELF_TEST: u8 = 0x4e;
/// A self-test that fails in its handler.
#[cfg(feature = "faults")]
pub const SELF_TEST: u8 = 0x4f;
/// The console's UART has room.
pub const CONSOLE_UART: u8 = 0x44;
/// A performance counter of a guest's has overflowed.
pub const COUNTERS: u8 = 0x46;
/// Rights of the host's memory have changed: flush the TLB.
pub const FLUSH_TLB: u8 = 0x45;
/// The host has ended: stop. Of a higher class than all others, so that none in service holds it back.
pub const STOP: u8 = 0xe0;
/// A UART has input for the CPU that owns the host's end.
pub const END_UART: u8 = 0xe1;
/// Spurious: no end of interrupt.
pub const SPURIOUS: u8 = 0xff;
