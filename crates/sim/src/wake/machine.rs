// SPDX-License-Identifier: MIT OR Apache-2.0
//! Costs of waking, with the source of each number.
//!
//! "Published" are the timings that David Woodhouse posted to the Linux kernel mailing list on 19 January 2021 ("use
//! x86 cpu park to speedup smp_init in kexec situation"): the four waits of each CPU, one line each, on a virtual
//! machine (Skylake, CPUs 10 to 15 shown) and on a 28-thread Haswell. Each range here runs from the smallest to
//! the largest value listed. Nothing is known about its shape, so all values in it count as equally likely; nor about
//! rare CPUs beyond it, so a real machine of thousands may wait longer for its slowest than the model does.

use core::ops::RangeInclusive;

/// A kind of machine. Durations in ticks.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Its name.
    pub name: &'static str,
    /// Clock. Published only as "Haswell" and "Skylake"; 3 GHz is assumed, and used for limits alone.
    pub ticks_per_us: u64,
    /// From the start-up interrupt to the first instruction. Published: the first wait.
    pub first_sign: RangeInclusive<u64>,
    /// Initialisation of the first thread of a core. Published: the second wait, CPUs 1 to 13 of the Haswell.
    pub first_thread: RangeInclusive<u64>,
    /// Initialisation of a thread while its sibling runs. Published: the second wait, CPUs 14 to 27 of the Haswell.
    pub sibling: RangeInclusive<u64>,
    /// TSC synchronisation as Linux does it: the baseline's. Published: the third wait.
    pub linux_sync: RangeInclusive<u64>,
    /// From there to online. Published: the fourth wait.
    pub going_online: RangeInclusive<u64>,
    /// Threads of a core.
    pub threads_per_core: u32,
    /// Sending one interrupt, until the next can be sent.
    pub interrupt: u64,
    /// Setting or clearing the warm-reset vector: four writes to CMOS ports at about 1 µs each (ISA timing).
    pub reset_vector: u64,
    /// Leaving MWAIT after a write. Assumed 2 µs: the exit latency that Intel's CPUs of that time declare for C1
    /// and C1E is 2 to 10 µs, and a parked CPU asks for the shallowest.
    pub parked_wake: u64,
    /// From the interrupt that wakes a halted CPU to its next poll. Assumed 2 µs, as for leaving MWAIT.
    pub halt_wake: u64,
    /// A cache line from the CPU that wrote it. Assumed 200: the order of a transfer within a package; between
    /// packages it is about twice that.
    pub line: u64,
    /// Threads that share a copy of what all read, which is then fetched once per package. Assumed.
    pub threads_per_package: u32,
    /// One PAUSE. 140 since Skylake (Intel optimization manual, section on PAUSE).
    pub pause: u64,
    /// One RDTSC. Assumed 25.
    pub read_clock: u64,
}

impl Machine {
    /// Returns the 28-thread Haswell, and as many more threads like its as are asked for.
    pub fn haswell() -> Self {
        Self {
            name: "Haswell, real hardware",
            ticks_per_us: 3000,
            first_sign: 3_420_856..=4_057_008,
            first_thread: 8_244_880..=8_941_736,
            sibling: 258_888..=300_948,
            linux_sync: 1_260..=2_152,
            going_online: 500..=1_300,
            threads_per_core: 2,
            // Not published. The MP specification (1.4, B.4) allows 20 µs for the dispatch; a write of the x2APIC
            // command register takes some hundred ticks, a polled xAPIC write some thousand.
            interrupt: 2_000,
            reset_vector: 12_000,
            parked_wake: 6_000,
            halt_wake: 6_000,
            line: 200,
            threads_per_package: 128,
            pause: 140,
            read_clock: 25,
        }
    }

    /// Returns the virtual machine on a Skylake host.
    pub fn virtual_skylake() -> Self {
        Self {
            name: "Skylake, virtual machine",
            first_sign: 181_092..=389_602,
            first_thread: 952_898..=976_280,
            sibling: 952_898..=976_280,
            linux_sync: 60_010_432..=60_014_786,
            going_online: 28..=30,
            threads_per_core: 1,
            // Published: sending INIT and start-up interrupt to one CPU takes about 300,000 together.
            interrupt: 150_000,
            ..Self::haswell()
        }
    }
}
