// SPDX-License-Identifier: MIT OR Apache-2.0
//! Costs of accesses, as the guest sees them: the rows of a published table, and a kernel's work when one overflows.

use core::hint::{black_box, spin_loop};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use tiny::apic::{self, Register};
use tiny::counters::{COUNTS, ENABLED, INTERRUPTS, Unit, WIDTH_MASK};
use tiny::timing::{absent, row, row_of};
use tiny::{cpu, interrupts, print};

const VECTOR: u8 = 0x52;
const FIXED_CONTROL: u32 = 0x38d;
/// The second counter of fixed purpose, cycles: OS and USR, and its interrupt.
const FIXED_CYCLES: u64 = 0xb << 4;
/// Its part that counts in user mode.
const FIXED_USER: u64 = 0x2 << 4;
/// Counters of a thread.
const EVENTS: u32 = 4;
/// Another event: cycles by a threshold, which is not counted here and must be taken all the same.
const OTHER: u64 = 1 << 24;
/// Longest wait for an interrupt before it counts as lost, in polls.
const PATIENCE: u32 = 10_000_000;

static HANDLED: AtomicU32 = AtomicU32::new(0);
static TOOK: AtomicU64 = AtomicU64::new(0);
static VENDOR: AtomicU32 = AtomicU32::new(0);

/// Prints every row; false if an interrupt got lost.
pub fn all(unit: &Unit, repetitions: usize) -> bool {
    unit.reset();
    row("empty", repetitions, || ());
    let (select, cycles) = (unit.select(0), unit.cycles() | COUNTS | INTERRUPTS);
    // Others count meanwhile, as they do under a profiler: a change concerns them, too, or does not.
    (1..EVENTS).for_each(|counter| cpu::write_msr(unit.select(counter), unit.cycles() | COUNTS));
    cpu::write_msr(select, cycles);
    row("rdpmc", repetitions, || _ = black_box(unit.read(0)));
    row("read_select", repetitions, || _ = black_box(cpu::read_msr(select)));
    row("write_counter", repetitions, || cpu::write_msr(unit.counter(0), 0));
    alternating(
        "stop_general",
        repetitions,
        || cpu::write_msr(select, cycles),
        || cpu::write_msr(select, cycles & !COUNTS),
    );
    alternating(
        "start_general",
        repetitions,
        || cpu::write_msr(select, cycles & !COUNTS),
        || cpu::write_msr(select, cycles),
    );
    alternating(
        "write_select",
        repetitions,
        || cpu::write_msr(select, cycles | OTHER),
        || cpu::write_msr(select, cycles),
    );
    let control = unit.control();
    let all = cpu::read_msr(control);
    alternating("enable_global", repetitions, || cpu::write_msr(control, 0), || cpu::write_msr(control, all));
    alternating("disable_global", repetitions, || cpu::write_msr(control, all), || cpu::write_msr(control, 0));
    cpu::write_msr(control, all);
    threads(unit, repetitions, control, all);
    fixed(unit, repetitions, control, all);
    let are_handled = handled(unit, repetitions);
    unit.reset();
    print!("exits: done\n");
    are_handled
}

/// A thread with four counters leaves the guest's CPU, and another one comes: what Linux does.
fn threads(unit: &Unit, repetitions: usize, control: u32, all: u64) {
    let each = |action: &dyn Fn(u32)| {
        cpu::write_msr(control, 0);
        (0..EVENTS).for_each(action);
        cpu::write_msr(control, all);
    };
    let leave = || {
        each(&|counter| {
            cpu::write_msr(unit.select(counter), unit.cycles() | COUNTS & !ENABLED);
            black_box(unit.read(counter));
        });
    };
    let come = || {
        each(&|counter| {
            cpu::write_msr(unit.counter(counter), WIDTH_MASK >> 1);
            cpu::write_msr(unit.select(counter), unit.cycles() | COUNTS);
        });
    };
    alternating("switch_out", repetitions, come, leave);
    alternating("switch_in", repetitions, leave, come);
}

/// Times the second action, the first done before it each time.
fn alternating(name: &str, repetitions: usize, before: impl Fn(), action: impl Fn()) {
    row_of(name, repetitions, || {
        before();
        let start = cpu::ticks();
        action();
        cpu::ticks() - start
    });
}

fn fixed(unit: &Unit, repetitions: usize, control: u32, all: u64) {
    if *unit == Unit::Amd {
        ["read_fixed_control", "stop_fixed", "start_fixed", "create_fixed"]
            .into_iter()
            .for_each(|name| absent(name, "AMD has none"));
        return;
    }
    cpu::write_msr(control, all | 0b111 << 32);
    row("read_fixed_control", repetitions, || _ = black_box(cpu::read_msr(FIXED_CONTROL)));
    let set = |value: u64| move || cpu::write_msr(FIXED_CONTROL, value);
    alternating("stop_fixed", repetitions, set(FIXED_CYCLES), set(0));
    alternating("start_fixed", repetitions, set(0), set(FIXED_CYCLES));
    alternating("create_fixed", repetitions, set(FIXED_CYCLES & !FIXED_USER), set(FIXED_CYCLES));
    cpu::write_msr(FIXED_CONTROL, 0);
}

/// From the handler's first access to its last: what Linux does.
fn handled(unit: &Unit, repetitions: usize) -> bool {
    VENDOR.store(u32::from(*unit == Unit::Amd), Ordering::Relaxed);
    interrupts::hook(VECTOR, handle);
    cpu::interrupts_on();
    let mut lost = 0;
    row_of("handle_overflow", repetitions.min(200), || {
        let before = HANDLED.load(Ordering::Relaxed);
        apic::write(Register::Performance, VECTOR.into());
        unit.start(0, 50_000);
        let ran = (0..PATIENCE).any(|_| {
            spin_loop();
            HANDLED.load(Ordering::Relaxed) != before
        });
        lost += u32::from(!ran);
        TOOK.load(Ordering::Relaxed)
    });
    cpu::interrupts_off();
    if lost != 0 {
        print!("exits: handle_overflow WRONG: {lost} interrupts never came\n");
    }
    lost == 0
}

fn handle(_rip: u64) {
    let unit = if VENDOR.load(Ordering::Relaxed) == 0 { Unit::Intel } else { Unit::Amd };
    let start = cpu::ticks();
    let control = cpu::read_msr(unit.control());
    cpu::write_msr(unit.control(), 0);
    let status = cpu::read_msr(unit.status());
    cpu::write_msr(unit.clear(), status);
    black_box(unit.read(0));
    cpu::write_msr(unit.counter(0), WIDTH_MASK >> 1);
    apic::write(Register::Performance, VECTOR.into());
    cpu::write_msr(unit.control(), control);
    TOOK.store(cpu::ticks() - start, Ordering::Relaxed);
    HANDLED.fetch_add(1, Ordering::Relaxed);
}
