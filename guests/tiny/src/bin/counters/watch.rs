// SPDX-License-Identifier: MIT OR Apache-2.0
//! Watches for ever, or until something is wrong, whether its counters agree to the last tick: nothing is lost of a
//! count, nothing invented, no overflow reported twice or not at all, wherever the guest is taken meanwhile.
//!
//! All count cycles, and the global control starts and stops them at once: so between a start and a stop each has
//! counted the same. Counter 0 overflows every [`PERIOD`]; its handler stops all, takes just one period from what it
//! states (more if it comes later than that), and starts all again. So whenever all stand still, counter 1, which
//! overflows never, is ahead of counter 0 by just the periods that were taken.

use core::hint::{black_box, spin_loop};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tiny::answers::{Wrong, expect, expect_that};
use tiny::apic::{self, Register};
use tiny::counters::{COUNTS, Unit, WIDTH_MASK};
use tiny::{cpu, interrupts, print};

const VECTOR: u8 = 0x53;
/// Ticks to an overflow: some milliseconds.
const PERIOD: u64 = 10_000_000;
/// An overflow that is so late is lost: a minute.
const LOST: u64 = 1 << 36;
/// Overflows between two lines.
const LINE_EVERY: u64 = 20;
/// Start values of the counters beside the first: each has a value of its own to keep.
const BEGINS: [u64; 3] = [0, 1 << 33, 0x1234_5678_9abc];

static VENDOR: AtomicU64 = AtomicU64::new(0);
static OVERFLOWS: AtomicU64 = AtomicU64::new(0);
/// Taken from counter 0.
static PERIODS: AtomicU64 = AtomicU64::new(0);
/// The status reported something else than the one overflow.
static IS_WRONG: AtomicBool = AtomicBool::new(false);

/// Lines report how many overflows there have been.
pub fn agree_to_the_last_tick(unit: &Unit) -> Result<(), Wrong> {
    let all = (1 << unit.counters()) - 1;
    VENDOR.store(u64::from(*unit == Unit::Amd), Ordering::Relaxed);
    interrupts::hook(VECTOR, overflown);
    apic::write(Register::Performance, VECTOR.into());
    cpu::write_msr(unit.control(), 0);
    unit.start(0, PERIOD);
    for (counter, begin) in (1..).zip(BEGINS) {
        cpu::write_msr(unit.counter(counter), begin);
        cpu::write_msr(unit.select(counter), unit.cycles() | COUNTS);
    }
    cpu::write_msr(unit.control(), all);
    let mut seen = 0;
    loop {
        until_next(unit, seen)?;
        seen += 1;
        cpu::interrupts_off();
        cpu::write_msr(unit.control(), 0);
        let compared = compare(unit);
        cpu::write_msr(unit.control(), all);
        compared?;
        if seen.is_multiple_of(LINE_EVERY) {
            print!("counters: watch: {seen} overflows, all agree\n");
        }
    }
}

/// Computes and leaves the guest in turn until the next overflow is reported.
fn until_next(unit: &Unit, seen: u64) -> Result<(), Wrong> {
    let start = cpu::ticks();
    cpu::interrupts_on();
    while OVERFLOWS.load(Ordering::Relaxed) == seen {
        (0..1000).for_each(|round| _ = black_box(round));
        black_box(cpu::cpuid(0));
        spin_loop();
        let waited = cpu::ticks() - start;
        expect_that("ticks in which no overflow was seen, of at most", LOST, waited, waited < LOST)?;
    }
    expect_that("status at an overflow", 1, cpu::read_msr(unit.status()), !IS_WRONG.load(Ordering::Relaxed))
}

/// While all stand still.
fn compare(unit: &Unit) -> Result<(), Wrong> {
    let counted = |counter: u32, begin: u64| unit.read(counter).wrapping_sub(begin) & WIDTH_MASK;
    let periods = PERIODS.load(Ordering::Relaxed).wrapping_mul(PERIOD);
    let by_periods = counted(0, (WIDTH_MASK + 1) - PERIOD).wrapping_add(periods) & WIDTH_MASK;
    for (counter, begin) in (1..).zip(BEGINS) {
        expect("ticks of counter", counter.into(), counted(counter, begin), by_periods)?;
    }
    Ok(())
}

/// The handler: what is behind the overflow stays counted.
fn overflown(_rip: u64) {
    let unit = if VENDOR.load(Ordering::Relaxed) == 0 { Unit::Intel } else { Unit::Amd };
    cpu::write_msr(unit.control(), 0);
    if cpu::read_msr(unit.status()) != 1 {
        IS_WRONG.store(true, Ordering::Relaxed);
    }
    cpu::write_msr(unit.clear(), 1);
    let behind = unit.read(0);
    let periods = behind / PERIOD + 1;
    cpu::write_msr(unit.counter(0), behind.wrapping_sub(periods * PERIOD) & WIDTH_MASK);
    PERIODS.fetch_add(periods, Ordering::Relaxed);
    OVERFLOWS.fetch_add(1, Ordering::Relaxed);
    apic::write(Register::Performance, VECTOR.into());
    cpu::write_msr(unit.control(), (1 << unit.counters()) - 1);
}
