// SPDX-License-Identifier: MIT OR Apache-2.0
//! Samples of a vCPU, taken from outside.

/// The size of a delay loop's code, its calls not counted.
pub const LOOP_BYTES: u64 = 256;
/// Longest range of code in bytes of a loop over more than one function.
pub const CODE_BYTES: u64 = 4096;
/// Greatest distance in bytes of stack pointers that belong to one call of a loop.
pub const STACK_BYTES: u64 = 512;

/// One sample of a vCPU, between two stretches of running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Time in ticks of the caller's clock.
    pub now: u64,
    /// The instruction pointer, linear.
    pub rip: u64,
    /// The stack pointer.
    pub rsp: u64,
    /// The root of the page tables.
    pub cr3: u64,
    /// The current privilege level.
    pub cpl: u8,
    /// RFLAGS.IF.
    pub interrupts_on: bool,
    /// Accesses to ports and device registers so far; the local APIC's are none of them.
    pub io: u64,
    /// Halts so far.
    pub halts: u64,
    /// Anything that differs if a general purpose register does.
    pub registers: u64,
    /// Address of the first instruction after the last sample that read the time stamp counter, if one did.
    pub clock_read_at: Option<u64>,
}

/// State of the rest of the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Circumstances {
    /// The guest has reported itself that it panicked.
    pub has_reported: bool,
    /// Another vCPU runs, or an interrupt can wake it.
    pub others_can_run: bool,
    /// At least one other has halted with interrupts off.
    pub others_halted_for_good: bool,
    /// They may be woken by this one: its kernel's locks are KVM's paravirtual ones.
    pub others_may_be_woken: bool,
}

/// Comparison of two successive samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// One delay loop that reads the clock.
    ClockLoop,
    /// One place, and no register has changed.
    StandsStill,
    /// One page's worth of code.
    Narrow,
    /// Other code: an interrupt handler's, or whatever comes next.
    Elsewhere,
    /// It does something: I/O, user mode, another address space; or it has waited.
    Alive,
}

impl Sample {
    /// Returns the sign that this sample and an earlier one show together.
    pub fn sign_after(&self, earlier: &Self) -> Sign {
        let is_alive = self.cpl != 0 || self.cr3 != earlier.cr3 || self.io != earlier.io || self.halts != earlier.halts;
        let is_one_loop = is_within(self.rip, earlier.rip, LOOP_BYTES) && is_within(self.rsp, earlier.rsp, STACK_BYTES);
        let reads_clock = self.clock_read_at.is_some_and(|at| is_within(at, self.rip, LOOP_BYTES));
        if is_alive {
            Sign::Alive
        } else if is_one_loop && reads_clock {
            Sign::ClockLoop
        } else if is_one_loop && self.registers == earlier.registers {
            Sign::StandsStill
        } else if is_within(self.rip, earlier.rip, CODE_BYTES) {
            Sign::Narrow
        } else {
            Sign::Elsewhere
        }
    }
}

fn is_within(one: u64, other: u64, bytes: u64) -> bool {
    one.abs_diff(other) < bytes
}
