// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interrupts and the local APIC (AMD APM vol. 2, chapter 16; Intel SDM vol. 3, chapter 11).

use core::arch::asm;
use core::hint::spin_loop;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use tiny::answers::{Wrong, expect, expect_that};
use tiny::apic::{self, Register};
use tiny::{cpu, interrupts};

const LOW: u8 = 0x41;
const HIGH: u8 = 0x52;
const TIMER: u8 = 0x61;
const MASKED: u32 = 1 << 16;
const PERIODIC: u32 = 1 << 17;
const PATIENCE: u32 = 2_000_000;
const TICKS: u32 = 200_000;

static AT: AtomicU64 = AtomicU64::new(0);
static ORDER: AtomicU32 = AtomicU32::new(0);
static IN_SERVICE: AtomicU32 = AtomicU32::new(0);

/// The register page's in-service, trigger-mode and request registers: word of a vector, 16 bytes apart.
pub fn bit(first: u64, vector: u8) -> u32 {
    cpu::read_memory(apic::PAGE + first + u64::from(vector >> 5) * 16) >> (vector & 31) & 1
}
const ISR: u64 = 0x100;
pub const TMR: u64 = 0x180;
const IRR: u64 = 0x200;

pub fn let_in_until(holds: impl Fn() -> bool) {
    cpu::interrupts_on();
    let _ = (0..PATIENCE).find(|_| {
        spin_loop();
        holds()
    });
    cpu::interrupts_off();
}

/// STI holds interrupts back for one instruction, and for ever if that is CLI.
pub fn shadow() -> Result<(), Wrong> {
    let behind: u64;
    interrupts::hook(LOW, |rip| AT.store(rip, Ordering::Relaxed));
    let before = interrupts::count(LOW);
    apic::send_self(LOW.into());
    // SAFETY: the handler keeps all registers.
    unsafe { asm!("sti", "cli") };
    expect("interrupts between STI and CLI", 0, (interrupts::count(LOW) - before).into(), 0)?;
    // SAFETY: as above.
    unsafe { asm!("sti", "nop", "5: lea {}, [rip + 5b]", "cli", out(reg) behind) };
    expect("interrupts behind STI", 0, (interrupts::count(LOW) - before).into(), 1)?;
    expect("interrupt at", behind, AT.load(Ordering::Relaxed), behind)
}

/// Of two that wait the higher one comes first.
pub fn priority_order() -> Result<(), Wrong> {
    interrupts::hook(LOW, |_| ORDER.store(ORDER.load(Ordering::Relaxed) << 8 | u32::from(LOW), Ordering::Relaxed));
    interrupts::hook(HIGH, |_| ORDER.store(ORDER.load(Ordering::Relaxed) << 8 | u32::from(HIGH), Ordering::Relaxed));
    apic::send_self(LOW.into());
    apic::send_self(HIGH.into());
    let before = interrupts::count(LOW);
    let_in_until(|| interrupts::count(LOW) != before);
    expect("order", 0, ORDER.load(Ordering::Relaxed).into(), u64::from(HIGH) << 8 | u64::from(LOW))
}

/// CR8 is the task priority register's upper half; what is not above it waits in IRR.
pub fn task_priority() -> Result<(), Wrong> {
    let before = interrupts::count(LOW);
    set_cr8(4);
    expect("TPR with CR8", 4, apic::read(Register::TaskPriority).into(), 0x40)?;
    expect("PPR with CR8", 4, cpu::read_memory(apic::PAGE + 0xa0).into(), 0x40)?;
    apic::send_self(LOW.into());
    let_in_until(|| interrupts::count(LOW) != before);
    expect("interrupts at their own priority", 4, (interrupts::count(LOW) - before).into(), 0)?;
    expect("IRR of", LOW.into(), bit(IRR, LOW).into(), 1)?;
    set_cr8(3);
    let_in_until(|| interrupts::count(LOW) != before);
    expect("interrupts above the priority", 3, (interrupts::count(LOW) - before).into(), 1)?;
    set_cr8(0);
    expect("IRR of", LOW.into(), bit(IRR, LOW).into(), 0)
}

fn set_cr8(class: u64) {
    // SAFETY: the task priority holds interrupts back, no more.
    unsafe { asm!("mov cr8, {}", in(reg) class, options(nostack, preserves_flags)) };
}

/// In its handler a vector is in service, and nowhere behind its end; it is edge-triggered.
pub fn in_service_until_eoi() -> Result<(), Wrong> {
    interrupts::hook(HIGH, |_| IN_SERVICE.store(bit(ISR, HIGH) << 1 | bit(IRR, HIGH), Ordering::Relaxed));
    let before = interrupts::count(HIGH);
    apic::send_self(HIGH.into());
    let_in_until(|| interrupts::count(HIGH) != before);
    expect("ISR and IRR in the handler of", HIGH.into(), IN_SERVICE.load(Ordering::Relaxed).into(), 0b10)?;
    expect("ISR behind the end of", HIGH.into(), bit(ISR, HIGH).into(), 0)?;
    expect("TMR of", HIGH.into(), bit(TMR, HIGH).into(), 0)
}

fn start_timer(entry: u32) -> u32 {
    let before = interrupts::count(TIMER);
    apic::write(Register::TimerDivide, 0xb);
    apic::write(Register::Timer, entry | u32::from(TIMER));
    apic::write(Register::TimerInitialCount, TICKS);
    before
}

/// Stops the timer, and takes an interrupt of its that waits.
fn stop_timer() {
    apic::write(Register::TimerInitialCount, 0);
    apic::write(Register::Timer, MASKED | u32::from(TIMER));
    let_in_until(|| bit(IRR, TIMER) == 0);
}

/// One interrupt, and the count stands at zero.
pub fn timer_one_shot() -> Result<(), Wrong> {
    let before = start_timer(0);
    let_in_until(|| interrupts::count(TIMER) != before);
    let_in_until(|| false);
    let (came, left) = (interrupts::count(TIMER) - before, cpu::read_memory(apic::PAGE + 0x390));
    stop_timer();
    expect("interrupts of the timer", TICKS.into(), came.into(), 1)?;
    expect("count that is left of", TICKS.into(), left.into(), 0)
}

/// One interrupt after another.
pub fn timer_periodic() -> Result<(), Wrong> {
    let before = start_timer(PERIODIC);
    let_in_until(|| interrupts::count(TIMER) - before >= 3);
    let came = interrupts::count(TIMER) - before;
    stop_timer();
    expect_that("interrupts of the timer", TICKS.into(), came.into(), came >= 3)
}

/// A masked timer counts and does not interrupt.
pub fn timer_masked() -> Result<(), Wrong> {
    let before = start_timer(MASKED);
    let_in_until(|| false);
    let came = interrupts::count(TIMER) - before;
    stop_timer();
    expect("interrupts of the masked timer", TICKS.into(), came.into(), 0)
}

/// HLT ends with an interrupt.
pub fn halt_wakes() -> Result<(), Wrong> {
    let before = start_timer(0);
    cpu::sleep_until_interrupt();
    let came = interrupts::count(TIMER) - before;
    stop_timer();
    expect("interrupts that ended HLT", 0, came.into(), 1)
}

/// CPUID has no APIC while APIC_BASE has it disabled.
pub fn disabled_apic_is_hidden() -> Result<(), Wrong> {
    const BASE: u32 = 0x1b;
    const ENABLE: u64 = 1 << 11;
    const X2APIC: u64 = 1 << 10;
    const APIC: u32 = 1 << 9;
    expect("APIC while enabled", 1, (cpu::cpuid(1)[3] & APIC).into(), APIC.into())?;
    cpu::write_msr(BASE, cpu::read_msr(BASE) & !(ENABLE | X2APIC));
    expect("APIC while disabled", 0, (cpu::cpuid(1)[3] & APIC).into(), 0)
}
