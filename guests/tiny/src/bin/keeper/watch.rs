// SPDX-License-Identifier: MIT OR Apache-2.0
//! All CPUs check continuously what no pause may change: memory, the clock, a timer. They measure how long they were
//! away.

use core::hint::spin_loop;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::memory;
use crate::wrong::Wrong;
use tiny::apic::Register;
use tiny::cpu::{read_msr, ticks, write_msr};
use tiny::smp::MOST;
use tiny::{apic, boot, cpu, interrupts, print, smp};

const TIMER_VECTOR: u8 = 0x41;
const TSC_DEADLINE: u32 = 2 << 17;
/// Distance in ticks at which a timer is set: a fraction of a millisecond.
const AHEAD: u64 = 1 << 20;
/// A timer that is so late is lost: seconds.
const LOST: u64 = 1 << 35;
/// Ticks between two lines: some tens of milliseconds.
const LINE_EVERY: u64 = 1 << 27;
/// Words of memory checked between two samples of the clock.
const WORDS: u64 = 32;
/// Memory that is checked, at most: all of it is, some times a second.
const MOST_BYTES: u64 = 16 << 20;

static SEED: AtomicU64 = AtomicU64::new(0);
static CPUS: AtomicU64 = AtomicU64::new(1);
/// The latest time that any CPU has seen.
static LATEST: AtomicU64 = AtomicU64::new(0);
/// By CPU: the longest it was away since the last line.
static AWAY: [AtomicU64; MOST] = [const { AtomicU64::new(0) }; MOST];
static IS_WRONG: AtomicBool = AtomicBool::new(false);

/// Fills the memory with a pattern, and watches for ever, or until something is wrong. Lines report how long each
/// CPU was away from its work at most since the line before, in ticks.
pub fn watch(seed: u64, cpus: usize) -> Result<(), Wrong> {
    memory::stain_part(seed, watched());
    SEED.store(seed, Ordering::Relaxed);
    CPUS.store(cpus as u64, Ordering::Relaxed);
    if !smp::start(cpus) {
        return Err(Wrong { what: "CPUs", item: 0, found: 1, wanted: cpus as u64 });
    }
    (1..cpus).for_each(|cpu| smp::give(cpu, on_another));
    Watcher::new(0).run()
}

fn watched() -> Range<u64> {
    let free = boot::free_memory();
    free.start..free.end.min(free.start + MOST_BYTES)
}

fn on_another(cpu: usize) {
    if let Err(wrong) = Watcher::new(cpu).run() {
        print!("keeper: watch: WRONG: {wrong}\n");
        IS_WRONG.store(true, Ordering::Release);
    }
}

/// One CPU's watch.
struct Watcher {
    cpu: usize,
    last: u64,
    next_line: u64,
    lines: u64,
    memory: Range<u64>,
    /// Index of its next word.
    at: u64,
    deadline: u64,
    fired_before: u32,
}

impl Watcher {
    fn new(cpu: usize) -> Self {
        let now = ticks();
        let memory = watched();
        let at = memory.start;
        Self { cpu, last: now, next_line: now + LINE_EVERY, lines: 0, memory, at, deadline: 0, fired_before: 0 }
    }

    fn run(&mut self) -> Result<(), Wrong> {
        apic::write(Register::Timer, TSC_DEADLINE | u32::from(TIMER_VECTOR));
        self.arm();
        cpu::interrupts_on();
        let mut result = Ok(());
        while result.is_ok() && !IS_WRONG.load(Ordering::Acquire) {
            result = self.check();
            // An emulator that has CPUs take turns goes on with the next.
            spin_loop();
        }
        cpu::interrupts_off();
        result
    }

    fn check(&mut self) -> Result<(), Wrong> {
        self.read_clock()?;
        self.at = memory::holds(SEED.load(Ordering::Relaxed), &self.memory, self.at, WORDS)?;
        self.check_timer()?;
        if self.cpu == 0 && self.last > self.next_line {
            self.report();
        }
        Ok(())
    }

    /// The clock never goes back, whichever CPU reads it.
    fn read_clock(&mut self) -> Result<(), Wrong> {
        let seen = LATEST.load(Ordering::Acquire);
        let now = ticks();
        if now < seen.max(self.last) {
            let item = self.cpu as u64;
            return Err(Wrong { what: "the clock of CPU", item, found: now, wanted: seen.max(self.last) });
        }
        LATEST.fetch_max(now, Ordering::AcqRel);
        AWAY[self.cpu].fetch_max(now - self.last, Ordering::Relaxed);
        self.last = now;
        Ok(())
    }

    /// A timer fires once, and not before its time.
    fn check_timer(&mut self) -> Result<(), Wrong> {
        let fired = interrupts::count_of(self.cpu, TIMER_VECTOR).wrapping_sub(self.fired_before);
        let now = ticks();
        let is_lost = now > self.deadline + LOST;
        if fired > 1 || (fired == 1 && now < self.deadline) || is_lost {
            let item = self.cpu as u64;
            return Err(Wrong { what: "the timer of CPU", item, found: u64::from(fired), wanted: 1 });
        }
        if fired == 1 && read_msr(apic::TSC_DEADLINE_MSR) == 0 {
            self.arm();
        }
        Ok(())
    }

    fn arm(&mut self) {
        self.fired_before = interrupts::count_of(self.cpu, TIMER_VECTOR);
        self.deadline = ticks() + AHEAD;
        write_msr(apic::TSC_DEADLINE_MSR, self.deadline);
    }

    fn report(&mut self) {
        self.lines += 1;
        print!("keeper: watch: {}:", self.lines);
        for away in AWAY.iter().take(CPUS.load(Ordering::Relaxed) as usize) {
            print!(" {}", away.swap(0, Ordering::Relaxed));
        }
        print!("\n");
        // Notifying is no work.
        self.last = ticks();
        self.next_line = self.last + LINE_EVERY;
    }
}
