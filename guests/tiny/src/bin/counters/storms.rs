// SPDX-License-Identifier: MIT OR Apache-2.0
//! Endless loads: a guest that its neighbours have to bear.

use core::hint::{black_box, spin_loop};
use core::sync::atomic::{AtomicU32, Ordering};
use tiny::apic::{self, Register};
use tiny::counters::{COUNTS, MASKED, Unit};
use tiny::{cpu, interrupts, print};

const VECTOR: u8 = 0x54;
/// CPUIDs between two lines of `count`.
const EXITS: u32 = 100_000;

/// Vendor of the unit: 0 Intel, 1 AMD.
static VENDOR: AtomicU32 = AtomicU32::new(0);

/// A way that does not come back.
pub type Storm = fn(&Unit) -> !;

/// By their names.
pub const STORMS: &[(&str, Storm)] = &[
    ("count", count),
    ("storm-writes", write),
    ("storm-overflows", overflow),
    ("storm-masked", overflow_masked),
    ("storm-alarms", set_timer),
];

/// Nothing but work of its own, for which it needs no counters.
pub fn compute() -> ! {
    print!("counters: compute: going\n");
    let mut sum = 0_u64;
    loop {
        sum = black_box(sum.wrapping_mul(31).wrapping_add(7));
    }
}

/// A counter counts, is never stopped and never written; the guest leaves its CPU all the time.
fn count(unit: &Unit) -> ! {
    cpu::write_msr(unit.select(0), unit.cycles() | COUNTS);
    loop {
        print!("counters: count: going\n");
        (0..EXITS).for_each(|_| _ = black_box(cpu::cpuid(0)));
    }
}

/// Each write changes something: what is counted, whether it is, by which control.
fn write(unit: &Unit) -> ! {
    print!("counters: storm-writes: going\n");
    let all = (1 << unit.counters()) - 1;
    let mut round = 0_u64;
    loop {
        for counter in 0..unit.counters() {
            // Another threshold is another event.
            let threshold = (round & 3) << 24;
            cpu::write_msr(unit.select(counter), unit.cycles() | threshold | COUNTS);
            cpu::write_msr(unit.counter(counter), round);
        }
        cpu::write_msr(unit.control(), all * (round & 1));
        round += 1;
    }
}

/// Every counter overflows at once, and again as soon as its interrupt has been served.
fn overflow(unit: &Unit) -> ! {
    print!("counters: storm-overflows: going\n");
    VENDOR.store(u32::from(*unit == Unit::Amd), Ordering::Relaxed);
    interrupts::hook(VECTOR, overflow_again);
    apic::write(Register::Performance, VECTOR.into());
    start_all(unit);
    cpu::interrupts_on();
    loop {
        spin_loop();
    }
}

fn overflow_again(_rip: u64) {
    let unit = if VENDOR.load(Ordering::Relaxed) == 0 { Unit::Intel } else { Unit::Amd };
    apic::write(Register::Performance, VECTOR.into());
    start_all(&unit);
}

/// Every counter overflows at each tick, and no interrupt reports it; the status is never cleared.
fn overflow_masked(unit: &Unit) -> ! {
    print!("counters: storm-masked: going\n");
    apic::write(Register::Performance, MASKED | u32::from(VECTOR));
    loop {
        start_all(unit);
    }
}

/// The timer is set again and again, long before it is due: so is the host's, which is to end the guest's turn.
fn set_timer(_: &Unit) -> ! {
    const TSC_DEADLINE_MODE: u32 = 2 << 17;
    print!("counters: storm-alarms: going\n");
    apic::write(Register::Timer, TSC_DEADLINE_MODE | u32::from(VECTOR));
    let mut far = u64::MAX / 2;
    loop {
        cpu::write_msr(apic::TSC_DEADLINE_MSR, far);
        far -= 1;
    }
}

fn start_all(unit: &Unit) {
    (0..unit.counters()).for_each(|counter| unit.start(counter, 1));
}
