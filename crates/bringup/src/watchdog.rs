// SPDX-License-Identifier: MIT OR Apache-2.0
//! A watchdog beside the CPUs: a timer of the HPET. An I/O APIC sends its interrupt as an NMI.
//!
//! While a new image has a CPU, nothing of the old one runs there. Another CPU can check the time and send an NMI; but
//! there may be no other one, or all may hang alike. The HPET counts whatever they do, and an NMI cannot be masked.
//!
//! ```text
//! HPET timer n ──edge──▶ I/O APIC input, NMI, the boot CPU ──▶ the switch pages' gate ──▶ old image
//! ```
//!
//! Registers: IA-PC HPET Specification 1.0a, section 2.3. Everything is done with 32-bit accesses and the low half of
//! the counter.

/// The HPET's registers.
pub trait Registers {
    /// The 32-bit word at this offset.
    fn read(&self, offset: u32) -> u32;
    /// Writes it.
    fn write(&self, offset: u32, value: u32);
}

/// The timer, and the input that it is wired to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watchdog {
    timer: u32,
    input: u32,
    period_femtoseconds: u32,
}

const CAPABILITIES: u32 = 0x000;
const PERIOD: u32 = 0x004;
const CONFIGURATION: u32 = 0x010;
const COUNTER: u32 = 0x0f0;
const FIRST_TIMER: u32 = 0x100;
const TIMER_BYTES: u32 = 0x20;
const TIMER_ROUTES: u32 = 4;
const TIMER_COMPARATOR: u32 = 8;

/// Of [`CONFIGURATION`].
const COUNTS: u32 = 1 << 0;
const LEGACY_ROUTES: u32 = 1 << 1;
/// Of a timer's configuration.
const LEVEL: u32 = 1 << 1;
const INTERRUPTS: u32 = 1 << 2;
const PERIODIC: u32 = 1 << 3;
const IS_32_BIT: u32 = 1 << 8;
const ROUTE: u32 = 0x1f << 9;
const BY_MESSAGE: u32 = 1 << 14;

/// Longer than the specification allows: there is no HPET.
const LONGEST_PERIOD_FEMTOSECONDS: u32 = 100_000_000;
/// ISA devices interrupt below, the PIT at 2.
const FIRST_INPUT: u32 = 16;
/// With legacy routes the first timers stand in for the PIT and the RTC.
const LEGACY_TIMERS: u32 = 2;
/// Half of the counter's low word: a time further ahead cannot be distinguished from the past.
const MOST_TICKS: u64 = 1 << 31;
/// A comparator that is nearer may have been passed when it is written.
const LEAST_TICKS: u64 = 64;
const FEMTOSECONDS_PER_US: u64 = 1_000_000_000;

impl Watchdog {
    /// Returns the last timer that can be wired to an input for which `is_free`, at the last such input.
    pub fn choose(registers: &impl Registers, is_free: impl Fn(u32) -> bool) -> Option<Self> {
        let period_femtoseconds = registers.read(PERIOD);
        if !(1..=LONGEST_PERIOD_FEMTOSECONDS).contains(&period_femtoseconds) {
            return None;
        }
        let first = if registers.read(CONFIGURATION) & LEGACY_ROUTES != 0 { LEGACY_TIMERS } else { 0 };
        (first..=last_timer(registers)).rev().find_map(|timer| {
            let routes = registers.read(of(timer) + TIMER_ROUTES);
            let input = (FIRST_INPUT..u32::BITS).rev().find(|input| routes >> input & 1 != 0 && is_free(*input))?;
            Some(Self { timer, input, period_femtoseconds })
        })
    }

    /// Returns the global interrupt that it is wired to: edge-triggered, active high.
    pub fn input(&self) -> u32 {
        self.input
    }

    /// Makes it fire once after this many microseconds, counted again from now.
    pub fn arm(&self, registers: &impl Registers, us: u64) {
        let ticks = us.saturating_mul(FEMTOSECONDS_PER_US) / u64::from(self.period_femtoseconds);
        let ticks = ticks.clamp(LEAST_TICKS, MOST_TICKS) as u32;
        let at = of(self.timer);
        let kept = registers.read(at) & !(LEVEL | INTERRUPTS | PERIODIC | ROUTE | BY_MESSAGE);
        registers.write(CONFIGURATION, registers.read(CONFIGURATION) | COUNTS);
        registers.write(at, kept | IS_32_BIT | self.input << 9);
        registers.write(at + TIMER_COMPARATOR, registers.read(COUNTER).wrapping_add(ticks));
        registers.write(at, kept | IS_32_BIT | self.input << 9 | INTERRUPTS);
    }

    /// Disables the timer's interrupt.
    pub fn disarm(&self, registers: &impl Registers) {
        disable_timer(registers, self.timer);
    }
}

/// Disables the interrupts of all timers of the HPET, whichever CPU armed them: for an image that has taken over.
pub fn disable_all(registers: &impl Registers) {
    (0..=last_timer(registers)).for_each(|timer| disable_timer(registers, timer));
}

fn disable_timer(registers: &impl Registers, timer: u32) {
    registers.write(of(timer), registers.read(of(timer)) & !INTERRUPTS);
}

fn last_timer(registers: &impl Registers) -> u32 {
    registers.read(CAPABILITIES) >> 8 & 0x1f
}

fn of(timer: u32) -> u32 {
    FIRST_TIMER + timer * TIMER_BYTES
}

#[cfg(test)]
#[path = "watchdog_tests.rs"]
mod tests;
