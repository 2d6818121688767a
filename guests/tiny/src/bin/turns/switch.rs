// SPDX-License-Identifier: MIT OR Apache-2.0
//! From one vCPU's last instruction to the other's first.
//!
//! Both run this loop; under `-icount shift=0` a tick is an instruction, so a sample is the length of the path plus at
//! most one turn of the loop on either side (some twenty instructions).

use core::arch::x86_64::_rdtsc;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use tiny::counters::Unit;
use tiny::{apic, print, smp};

/// Samples there is room for.
const ROOM: usize = 4096;

/// The latest time that each has seen.
static SEEN: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
static SAMPLES: [AtomicU64; ROOM] = [const { AtomicU64::new(0) }; ROOM];
static TAKEN: AtomicUsize = AtomicUsize::new(0);
static WANTED: AtomicUsize = AtomicUsize::new(0);
static COUNTERS: AtomicUsize = AtomicUsize::new(0);
static IS_OVER: AtomicBool = AtomicBool::new(false);

/// Takes so many samples, and prints the row.
pub fn measure(samples: usize, counters: usize) -> bool {
    apic::enable();
    if !smp::start(2) {
        print!("turns: switch WRONG: there is no second CPU\n");
        return false;
    }
    let wanted = samples.clamp(1, ROOM);
    WANTED.store(wanted, Ordering::Release);
    COUNTERS.store(counters, Ordering::Release);
    smp::give(1, take_turns);
    take_turns(0);
    let mut sorted = [0; ROOM];
    let sorted = &mut sorted[..wanted];
    sorted.iter_mut().zip(&SAMPLES).for_each(|(place, sample)| *place = sample.load(Ordering::Relaxed));
    sorted.sort_unstable();
    print!("turns: switch min={} median={} n={wanted}\n", sorted[0], sorted[wanted / 2]);
    true
}

fn take_turns(own: usize) {
    start_counters();
    let other = 1 - own;
    let mut before = SEEN[other].load(Ordering::Relaxed);
    while !IS_OVER.load(Ordering::Relaxed) {
        // SAFETY: every 64-bit CPU has RDTSC, and CR4.TSD is clear.
        let now = unsafe { _rdtsc() };
        SEEN[own].store(now, Ordering::Relaxed);
        let last = SEEN[other].load(Ordering::Relaxed);
        // A time from before the other's last is one that was read before the switch: the next one counts.
        if last != before && now > last {
            before = last;
            note(now - last);
        }
    }
}

/// Cycles, far from any overflow.
fn start_counters() {
    if let Some(unit) = Unit::find() {
        (0..COUNTERS.load(Ordering::Acquire) as u32).for_each(|counter| unit.start(counter, 1 << 46));
    }
}

fn note(sample: u64) {
    let index = TAKEN.fetch_add(1, Ordering::AcqRel);
    if let Some(place) = SAMPLES.get(index) {
        place.store(sample, Ordering::Relaxed);
    }
    if index + 1 >= WANTED.load(Ordering::Acquire) {
        IS_OVER.store(true, Ordering::Release);
    }
}
