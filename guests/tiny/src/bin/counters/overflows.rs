// SPDX-License-Identifier: MIT OR Apache-2.0
//! Overflows: by vector, by NMI, masked, one after the other.

use core::hint::spin_loop;
use core::sync::atomic::{AtomicU32, Ordering};
use tiny::answers::{Wrong, expect, expect_that};
use tiny::apic::{self, Register};
use tiny::counters::{MASKED, NMI, Unit};
use tiny::interrupts::{count, hook};
use tiny::{cpu, interrupts};

const VECTOR: u8 = 0x51;
const NMI_VECTOR: u8 = 2;
/// Ticks to an overflow.
const PERIOD: u64 = 100_000;
/// Longest wait for one, in polls.
const PATIENCE: u32 = 10_000_000;
/// Overflows of `each-tick`.
const OVERFLOWS: u32 = 200;
/// Longest wait for all of them, in polls.
const PATIENCE_FOR_ALL: u32 = 500_000_000;

/// Overflows that are still to be asked for, by the handler.
static LEFT: AtomicU32 = AtomicU32::new(0);
/// Vendor of the unit: 0 Intel, 1 AMD.
static VENDOR: AtomicU32 = AtomicU32::new(0);

/// Once, when it is due and not before, with its bit in the status.
pub fn interrupt_by_vector(unit: &Unit) -> Result<(), Wrong> {
    apic::write(Register::Performance, VECTOR.into());
    came(unit, VECTOR)?;
    expect("status", 1, cpu::read_msr(unit.status()), 1)?;
    cpu::write_msr(unit.clear(), 1);
    expect("status when cleared", 1, cpu::read_msr(unit.status()), 0)?;
    // Intel's entry masks itself, AMD's does not.
    let is_masked = if *unit == Unit::Intel { u64::from(MASKED) } else { 0 };
    expect("local vector's mask", 0, u64::from(apic::read(Register::Performance) & MASKED), is_masked)
}

/// The same with interrupts off.
pub fn interrupt_by_nmi(unit: &Unit) -> Result<(), Wrong> {
    apic::write(Register::Performance, NMI);
    came(unit, NMI_VECTOR)
}

fn came(unit: &Unit, vector: u8) -> Result<(), Wrong> {
    let before = count(vector);
    let start = cpu::ticks();
    unit.start(0, PERIOD);
    interrupts_on_unless_nmi(vector);
    let has_come = (0..PATIENCE).any(|_| {
        spin_loop();
        count(vector) != before
    });
    let took = cpu::ticks() - start;
    cpu::interrupts_off();
    cpu::write_msr(unit.select(0), 0);
    expect_that("interrupts of vector", vector.into(), 0, has_come)?;
    expect_that("ticks to the overflow of", PERIOD, took, took >= PERIOD)?;
    expect("interrupts of one overflow, vector", vector.into(), (count(vector) - before).into(), 1)
}

fn interrupts_on_unless_nmi(vector: u8) {
    if vector != NMI_VECTOR {
        cpu::interrupts_on();
    }
}

/// The status reports it; unmasked later, it does not come any more.
pub fn are_silent_when_masked(unit: &Unit) -> Result<(), Wrong> {
    let before = count(VECTOR);
    apic::write(Register::Performance, MASKED | u32::from(VECTOR));
    cpu::interrupts_on();
    unit.start(0, 1);
    let is_reported = (0..PATIENCE).any(|_| cpu::read_msr(unit.status()) & 1 != 0);
    cpu::write_msr(unit.select(0), 0);
    apic::write(Register::Performance, VECTOR.into());
    cpu::cpuid(0);
    cpu::interrupts_off();
    expect_that("status when masked", 1, 0, is_reported)?;
    expect("interrupts that were masked", VECTOR.into(), (count(VECTOR) - before).into(), 0)
}

/// The handler asks for the next one at once: each comes, and the guest goes on in between.
pub fn at_each_tick_are_bounded(unit: &Unit) -> Result<(), Wrong> {
    LEFT.store(OVERFLOWS, Ordering::Relaxed);
    VENDOR.store(u32::from(*unit == Unit::Amd), Ordering::Relaxed);
    interrupts::hook(VECTOR, again);
    apic::write(Register::Performance, VECTOR.into());
    let before = count(VECTOR);
    cpu::interrupts_on();
    unit.start(0, 1);
    let is_over = (0..PATIENCE_FOR_ALL).any(|_| LEFT.load(Ordering::Relaxed) == 0);
    cpu::interrupts_off();
    cpu::write_msr(unit.select(0), 0);
    hook(VECTOR, |_| ());
    expect_that("overflows in a row, left of", OVERFLOWS.into(), LEFT.load(Ordering::Relaxed).into(), is_over)?;
    expect("interrupts of", OVERFLOWS.into(), (count(VECTOR) - before).into(), (OVERFLOWS).into())
}

fn again(_rip: u64) {
    let unit = if VENDOR.load(Ordering::Relaxed) == 0 { Unit::Intel } else { Unit::Amd };
    let left = LEFT.load(Ordering::Relaxed).saturating_sub(1);
    LEFT.store(left, Ordering::Relaxed);
    cpu::write_msr(unit.select(0), 0);
    cpu::write_msr(unit.clear(), 1);
    apic::write(Register::Performance, VECTOR.into());
    if left != 0 {
        unit.start(0, 1);
    }
}
