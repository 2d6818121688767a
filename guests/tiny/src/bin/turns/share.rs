// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest's share of a CPU, second by second of the wall clock.
//!
//! The wall clock is KVM's (Linux Documentation/virt/kvm/x86/msr.rst): the time at which the guest's time stamp counter
//! was zero, asked for once, and the counter's rate from CPUID leaf 4000_0010h, so that reading it is no exit.

use core::arch::x86_64::_rdtsc;
use core::hint::black_box;
use core::ptr;
use tiny::{cpu, print};

const WALL_CLOCK_MSR: u32 = 0x4b56_4d00;
const TIMING_LEAF: u32 = 0x4000_0010;
const NANOSECONDS: u128 = 1_000_000_000;
/// Seconds there is room for.
const ROOM: usize = 16;
/// Steps of one round of work.
const STEPS: u64 = 64;
/// Rounds between two signs of life. A guest that only reads the clock is taken for a kernel that waits for ever in a
/// delay loop, and gets less than its share; an access to a port, here one without a device, distinguishes the two.
const ROUNDS_BETWEEN_SIGNS: u64 = 1024;
const SIGN_OF_LIFE: u16 = 0x80;

/// The host's structure: a version that is even, seconds, nanoseconds.
#[repr(C, align(16))]
struct WallClock([u32; 3]);

/// Time in nanoseconds since 1970 at which the counter was zero, and its ticks per millisecond.
struct Clock {
    zero_ns: u128,
    khz: u128,
}

/// Counts in so many whole seconds, and prints a row for each.
pub fn measure(seconds: usize) -> bool {
    let Some(clock) = Clock::read() else {
        print!("turns: share WRONG: no wall clock\n");
        return false;
    };
    let mut counts = [0_u64; ROOM];
    let counts = &mut counts[..seconds.clamp(1, ROOM)];
    let first = clock.second() + 1;
    work_until(clock.tick_of(first));
    for (second, count) in (first + 1..).zip(counts.iter_mut()) {
        *count = work_until(clock.tick_of(second));
    }
    for (second, count) in (first..).zip(counts.iter()) {
        print!("turns: second={second} rounds={count}\n");
    }
    true
}

/// Rounds of work until the counter is there.
fn work_until(end: u64) -> u64 {
    let mut rounds = 0;
    while now() < end {
        black_box((0..STEPS).fold(rounds, |sum, step| black_box(sum ^ step)));
        rounds += 1;
        if rounds % ROUNDS_BETWEEN_SIGNS == 0 {
            cpu::outb(SIGN_OF_LIFE, 0);
        }
    }
    rounds
}

impl Clock {
    fn read() -> Option<Self> {
        let mut area = WallClock([0; 3]);
        cpu::write_msr(WALL_CLOCK_MSR, &raw mut area as u64);
        // SAFETY: the area is here still; the host has written to it.
        let [_, seconds, nanoseconds] = unsafe { ptr::read_volatile(&raw const area.0) };
        let khz = cpu::cpuid(TIMING_LEAF)[0];
        let zero_ns = u128::from(seconds) * NANOSECONDS + u128::from(nanoseconds);
        (seconds != 0 && khz != 0).then_some(Self { zero_ns, khz: khz.into() })
    }

    /// The second that it is.
    fn second(&self) -> u64 {
        let ns = self.zero_ns + u128::from(now()) * 1_000_000 / self.khz;
        (ns / NANOSECONDS) as u64
    }

    /// Returns when that second begins, on the counter.
    fn tick_of(&self, second: u64) -> u64 {
        let ns = (u128::from(second) * NANOSECONDS).saturating_sub(self.zero_ns);
        (ns * self.khz / 1_000_000) as u64
    }
}

fn now() -> u64 {
    // SAFETY: every 64-bit CPU has RDTSC, and CR4.TSD is clear.
    unsafe { _rdtsc() }
}
