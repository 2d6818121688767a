// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits and delays: the delays that CPUs need between INIT and start-up interrupt, and the limits of every wait. All
//! in ticks of the time stamp counter; nothing waits without a limit.

use crate::state::Phase;

/// Vendor of the CPU (CPUID leaf 0).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vendor {
    /// `GenuineIntel`.
    Intel,
    /// `AuthenticAMD`.
    Amd,
    /// `HygonGenuine`: Zen under another name, from family 18h on.
    Hygon,
    /// Any other vendor.
    Other,
}

impl Vendor {
    /// From the twelve letters of CPUID leaf 0, in the order EBX, EDX, ECX.
    pub fn from_letters(letters: &[u8; 12]) -> Self {
        match letters {
            b"GenuineIntel" => Self::Intel,
            b"AuthenticAMD" => Self::Amd,
            b"HygonGenuine" => Self::Hygon,
            _ => Self::Other,
        }
    }
}

/// Family of CPUID leaf 1's EAX, extended part included (AMD APM vol 3, E.3.2; Intel SDM vol 2, CPUID).
pub const fn family(leaf1_eax: u32) -> u32 {
    let base = leaf1_eax >> 8 & 0xf;
    if base == 0xf { base + (leaf1_eax >> 20 & 0xff) } else { base }
}

/// The universal start-up algorithm's wait between INIT and start-up interrupt (MP specification 1.4, B.4).
pub const UNIVERSAL_AFTER_INIT_US: u64 = 10_000;

/// Microseconds from INIT to start-up interrupt.
///
/// The 10 ms of the MP specification are for CPUs with an external APIC or of its time. Those that have their
/// APIC inside latch a start-up interrupt that comes right after INIT: Intel's family 6 (since 1995) and what follows
/// it, AMD's since family 0Fh, Hygon's. Of others nothing is known, so they get the 10 ms.
pub const fn after_init_us(vendor: Vendor, family: u32) -> u64 {
    match (vendor, family) {
        (Vendor::Intel, 6 | 0xf..) | (Vendor::Amd, 0xf..) | (Vendor::Hygon, 0x18..) => 0,
        _ => UNIVERSAL_AFTER_INIT_US,
    }
}

/// The CPUs that one interrupt wakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Each gets its own INIT and start-up interrupt.
    Each,
    /// All but the sender get one. Sound only where every CPU of the machine is wanted (no limit by the operator,
    /// none disabled by the firmware: those would wake too) and none runs yet (INIT would reset it).
    Everyone,
}

/// Delays and limits, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Between INIT and start-up interrupt.
    pub after_init: u64,
    /// Time without a sign of life after which the kick is repeated, once.
    pub second_kick: u64,
    /// From the kick to the first sign of life.
    pub first_sign: u64,
    /// From there to the end of its initialisation.
    pub initialisation: u64,
    /// One answer in an exchange of time stamps.
    pub answer: u64,
    /// The first answer of the boot CPU, which lets those that ask take turns.
    pub turn: u64,
    /// Spinning for an answer of a partner that executes; then it is slept.
    pub spell: u64,
    /// Spinning for the next question of one that has just been woken.
    pub stay: u64,
    /// An error of a clock's difference that is small enough to ask no more.
    pub tight: u64,
    /// From one poll of the CPUs that have not reported to the next, by the boot CPU.
    pub poll_interval: u64,
    /// The whole synchronisation.
    pub tsc_sync: u64,
    /// From there to being online. Longer than `initialisation` and `tsc_sync` together: a CPU that answers
    /// others' questions about the time goes online only after these.
    pub online: u64,
}

impl Limits {
    /// The limits at a clock of `ticks_per_us`.
    ///
    /// | limit | reason |
    /// |---|---|
    /// | second kick | 10 ms: the slowest first sign measured on real hardware is 4 M cycles (1.5 ms), so the first interrupt was lost; the specification sends it after 200 µs whether needed or not, which a CPU that runs ignores |
    /// | first sign, initialisation | 1 s: 250 times the slowest measured; an emulator with fewer CPUs than it shows needs some of it |
    /// | answer | 50 ms: more than an emulator's or host's time slice |
    /// | turn | 600 ms: 300 CPUs before this one, at an emulator's 2 ms each |
    /// | spell | 10 µs: many times the time that a line takes. A partner that takes longer does not execute, perhaps because this one spins where it would run |
    /// | stay | 100 µs: the time that a sleeper needs to wake, in an emulator as well |
    /// | tight | 125 ns: the time that a line takes between CPUs that are far apart; no CPU can resolve less than that |
    /// | poll interval | 5 ms: half of the second kick |
    /// | TSC | 1 s: the turn, and 16 answers, twice, by a parent or else by the boot CPU |
    /// | online | 2.5 s: the two before it, and a rest |
    pub const fn new(ticks_per_us: u64, after_init_us: u64) -> Self {
        let ms = ticks_per_us.saturating_mul(1000);
        Self {
            after_init: ticks_per_us.saturating_mul(after_init_us),
            second_kick: ms.saturating_mul(10),
            first_sign: ms.saturating_mul(1000),
            initialisation: ms.saturating_mul(1000),
            answer: ms.saturating_mul(50),
            turn: ms.saturating_mul(600),
            spell: ticks_per_us.saturating_mul(10),
            stay: ms / 10,
            tight: ticks_per_us.div_ceil(8),
            poll_interval: ms.saturating_mul(5),
            tsc_sync: ms.saturating_mul(1000),
            online: ms.saturating_mul(2500),
        }
    }

    /// Returns how long a CPU may be waited for in this phase.
    pub const fn of(&self, phase: Phase) -> u64 {
        match phase {
            Phase::FirstSign => self.first_sign,
            Phase::Initialisation => self.initialisation,
            Phase::TscSync => self.tsc_sync,
            Phase::Online => self.online,
        }
    }

    /// The longest that one CPU can hold up the boot CPU.
    pub const fn total(&self) -> u64 {
        self.first_sign.saturating_add(self.initialisation).saturating_add(self.tsc_sync).saturating_add(self.online)
    }
}

#[cfg(test)]
#[path = "startup_tests.rs"]
mod tests;
