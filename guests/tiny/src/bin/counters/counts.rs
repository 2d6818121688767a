// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counted events.

use core::hint::black_box;
use tiny::answers::{Wrong, expect, expect_that};
use tiny::counters::{COUNTS, Unit};
use tiny::cpu;

/// Rounds of the loop that is counted.
const ROUNDS: u32 = 200_000;
/// Exits while it counts.
const EXITS: u32 = 2_000;

/// The guest's own: while it computes, as many ticks as the clock reports; while it exits, fewer.
pub fn are_of_the_guests_time(unit: &Unit) -> Result<(), Wrong> {
    cpu::write_msr(unit.select(0), unit.cycles() | COUNTS);
    let (ticks, cycles) = spans(unit, || (0..ROUNDS).for_each(|round| _ = black_box(round)));
    expect_that("computing, counted of ticks", ticks, cycles, cycles > 0 && cycles <= ticks)?;
    let (ticks, cycles) = spans(unit, || (0..EXITS).for_each(|_| _ = black_box(cpu::cpuid(0))));
    expect_that("exiting, counted of ticks", ticks, cycles, cycles > 0 && cycles < ticks)?;
    let first = unit.read(0);
    let second = unit.read(0);
    expect_that("it goes forward from", first, second, second > first)
}

/// By the select, or by the global control.
pub fn stand_still_when_stopped(unit: &Unit) -> Result<(), Wrong> {
    cpu::write_msr(unit.select(0), unit.cycles() | COUNTS);
    cpu::write_msr(unit.control(), 0);
    let stopped = unit.read(0);
    expect_that("it has counted", 0, stopped, stopped > 0)?;
    cpu::cpuid(0);
    expect("stopped by the control", stopped, unit.read(0), stopped)?;
    cpu::write_msr(unit.select(0), 0);
    cpu::write_msr(unit.control(), 1);
    expect("stopped by the select", stopped, unit.read(0), stopped)
}

/// Instructions and unknown events are not counted here: these counters keep the value written to them.
pub fn of_what_is_unknown_stand_still(unit: &Unit) -> Result<(), Wrong> {
    for (counter, event) in [(0, 0xc0), (1, 0xff)] {
        cpu::write_msr(unit.counter(counter), 5);
        cpu::write_msr(unit.select(counter), event | COUNTS);
        cpu::cpuid(0);
        expect("event", event, unit.read(counter), 5)?;
    }
    Ok(())
}

/// Ticks of the clock and of the counter.
fn spans(unit: &Unit, action: impl FnOnce()) -> (u64, u64) {
    let ticks = cpu::ticks();
    let cycles = unit.read(0);
    action();
    let cycles = unit.read(0) - cycles;
    (cpu::ticks() - ticks, cycles)
}
