// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rates of the time stamp counter and of the local APIC's timer, and the time by them.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::arch::cpu;

const NANOSECONDS: u64 = 1_000_000_000;

static TSC_HZ: AtomicU64 = AtomicU64::new(0);
static TICKS_PER_US: AtomicU64 = AtomicU64::new(0);
static TSC_AT_BOOT: AtomicU64 = AtomicU64::new(0);
/// APIC timer ticks per TSC tick, as a fixed-point number with 32 fractional bits.
static APIC_TICKS_PER_TSC: AtomicU64 = AtomicU64::new(0);
static HAS_DEADLINE: AtomicBool = AtomicBool::new(false);

/// Notes the start of time: when the image's first instruction was.
pub fn start_at(ticks: u64) {
    TSC_AT_BOOT.store(ticks, Ordering::Relaxed);
}

/// Results of [`calibrate`](super::calibrate), and the start of time: for the next image, which need not measure
/// anything.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    /// Ticks of the time stamp counter per second.
    pub tsc_hz: u64,
    /// The counter at the start of time.
    pub tsc_at_boot: u64,
    /// APIC timer ticks per TSC tick, 32 bits behind the point.
    pub apic_ratio: u64,
}

/// Returns what is known of the clock.
pub fn rates() -> Rates {
    Rates {
        tsc_hz: TSC_HZ.load(Ordering::Relaxed),
        tsc_at_boot: TSC_AT_BOOT.load(Ordering::Relaxed),
        apic_ratio: APIC_TICKS_PER_TSC.load(Ordering::Relaxed),
    }
}

/// Goes on with the clock of the image before, which never stopped.
pub fn resume(rates: Rates) {
    detect_deadline();
    TSC_AT_BOOT.store(rates.tsc_at_boot, Ordering::Relaxed);
    set_apic_ratio(rates.apic_ratio);
    set_tsc_hz(rates.tsc_hz);
}

/// Checks whether the CPUs have a TSC deadline, and returns it.
pub fn detect_deadline() -> bool {
    let has_deadline = cpu::cpuid(1, 0).ecx & (1 << 24) != 0;
    HAS_DEADLINE.store(has_deadline, Ordering::Relaxed);
    has_deadline
}

/// Returns true if an alarm is a TSC deadline.
#[inline]
pub fn has_deadline() -> bool {
    HAS_DEADLINE.load(Ordering::Relaxed)
}

/// Sets the time stamp counter's rate, as it is first known.
pub fn set_tsc_hz(hz: u64) {
    TSC_HZ.store(hz, Ordering::Relaxed);
    TICKS_PER_US.store(hz.div_ceil(1_000_000), Ordering::Relaxed);
}

/// Sets the time stamp counter's rate, known better than before. Waits stay as long as they are.
pub fn refine_tsc_hz(hz: u64) {
    TSC_HZ.store(hz, Ordering::Relaxed);
}

/// Sets the APIC timer's rate.
pub fn set_apic_ratio(ratio: u64) {
    APIC_TICKS_PER_TSC.store(ratio, Ordering::Relaxed);
}

/// APIC timer ticks per TSC tick, 32 bits behind the point.
#[inline]
pub fn apic_ratio() -> u64 {
    APIC_TICKS_PER_TSC.load(Ordering::Relaxed)
}

/// Ticks of the time stamp counter per second; 0 before calibration.
pub fn tsc_hz() -> u64 {
    TSC_HZ.load(Ordering::Relaxed)
}

/// The time stamp counter at [`start_at`].
pub fn origin() -> u64 {
    TSC_AT_BOOT.load(Ordering::Relaxed)
}

/// Nanoseconds since [`start_at`]; 0 before calibration.
pub fn uptime_ns() -> u64 {
    ticks_to_ns(cpu::tsc().wrapping_sub(TSC_AT_BOOT.load(Ordering::Relaxed)))
}

/// Microseconds as TSC ticks; 0 before calibration.
#[inline]
pub fn us_to_ticks(microseconds: u64) -> u64 {
    microseconds * TICKS_PER_US.load(Ordering::Relaxed)
}

/// TSC ticks as nanoseconds; 0 before calibration.
pub fn ticks_to_ns(ticks: u64) -> u64 {
    match tsc_hz() {
        0 => 0,
        hz => (u128::from(ticks) * u128::from(NANOSECONDS) / u128::from(hz)) as u64,
    }
}
