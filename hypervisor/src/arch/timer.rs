// SPDX-License-Identifier: MIT OR Apache-2.0
//! Time: how fast the time stamp counter and the local APIC's timer run, and the one-shot alarm of each CPU.

mod calibration;
mod rates;
mod reference;

pub use self::calibration::{calibrate, refine};
pub use self::rates::{Rates, origin, rates, resume, start_at, ticks_to_ns, tsc_hz, uptime_ns, us_to_ticks};
use self::rates::{apic_ratio, has_deadline};
pub use self::reference::{HPET_MAPPED_AT, Reference};
use super::{apic, cpu};

const MSR_TSC_DEADLINE: u32 = 0x6e0;

/// Prepares the calling CPU's timer as [`calibrate`] did for the first.
pub fn prepare_this_cpu() {
    apic::prepare_timer(has_deadline());
}

/// Tries until it succeeds, for `us` microseconds at most (so many times where the TSC's rate is not known yet). A
/// lock's holder needs time, not attempts: a hypervisor or an emulator below may not run it for a while.
pub fn try_for<T>(us: u64, mut attempt: impl FnMut() -> Option<T>) -> Option<T> {
    let (began, ticks) = (cpu::tsc(), us_to_ticks(us));
    let mut tries = 0;
    loop {
        if let Some(found) = attempt() {
            return Some(found);
        }
        tries += 1;
        if cpu::tsc().wrapping_sub(began) > ticks && tries > us {
            return None;
        }
        cpu::pause();
    }
}

/// Makes the calling CPU's timer fire when the time stamp counter reaches `deadline`; at once if it has.
#[inline]
pub fn set_alarm(deadline: u64) {
    if has_deadline() {
        // SAFETY: CPUID reports that the register exists; 0 would disarm, so a deadline in the past is 1.
        unsafe { cpu::write_msr(MSR_TSC_DEADLINE, deadline.max(1)) };
        return;
    }
    let ticks = deadline.saturating_sub(cpu::tsc());
    // Rounded up: an interrupt before its time only costs another one.
    let count = ((u128::from(ticks) * u128::from(apic_ratio())) >> 32) + 1;
    // A deadline further off than the counter reaches fires early; the CPU that set it checks the clock again.
    apic::start_timer(count.clamp(1, u128::from(u32::MAX)) as u32);
}

/// Stops the calling CPU's timer.
pub fn clear_alarm() {
    if has_deadline() {
        // SAFETY: CPUID reports that the register exists; 0 disarms.
        unsafe { cpu::write_msr(MSR_TSC_DEADLINE, 0) };
    } else {
        apic::start_timer(0);
    }
}

/// Waits at least `microseconds`, spinning: for hardware that gives no other choice.
pub fn delay_us(microseconds: u64) {
    let end = cpu::tsc() + microseconds * tsc_hz() / 1_000_000;
    while cpu::tsc() < end {
        cpu::pause();
    }
}
