// SPDX-License-Identifier: MIT OR Apache-2.0
//! Detection from outside that a guest's kernel has panicked or hangs.
//!
//! A kernel that has panicked halts its other CPUs with interrupts off and spins on the last one for ever, in a delay
//! loop that reads the time stamp counter. One that hangs spins with interrupts off. Either wastes a CPU that others
//! could use, and reports nothing. A [`Watch`] checks one vCPU every [`SAMPLE_MS`], and only while it never waits: a
//! healthy guest goes idle before its first sample is due, and costs nothing.
//!
//! ```text
//!            a sample like the one before            enough of them
//!   nothing ─────────────────────────────► suspected ───────────────► spins ──► the host's policy
//!      ▲                                       │                        │
//!      └── I/O, HLT, user mode, another address space, other code ──────┘  lifts a throttle at once
//! ```
//!
//! **Signs of a spin.** Of two successive samples in kernel mode, in one address space, without I/O and without HLT
//! in between:
//!
//! | sign | observation | other causes |
//! |---|---|---|
//! | [`Sign::ClockLoop`] | both samples are within [`LOOP_BYTES`] on one stack, and the first instruction that read the clock after the earlier sample lies there too | a driver that waits in a delay loop |
//! | [`Sign::StandsStill`] | within [`LOOP_BYTES`], and no general purpose register differs | a kernel that polls while idle (`idle=poll`) |
//! | [`Sign::Narrow`] | within [`CODE_BYTES`] | a kernel that computes |
//!
//! One sample that shows none of them is forgiven, since interrupts are served in between; the second in a row is not.
//!
//! **Conclusions** ([`Circumstances`] hold the state of the rest of the guest):
//!
//! - [`Diagnosis::Panicked`] after [`ENOUGH`] signs of a clock loop, if no other vCPU can run; or after as
//!   many of standing still, if moreover another one has halted with interrupts off, for good.
//! - [`Diagnosis::Hung`], whatever the others do, if interrupts were off at every sample for the guest's own limit.
//!   Where vCPUs that have halted so may be woken by another (paravirtual locks), it takes 32 times as many signs.
//! - A guest that reported its panic itself needs no proof: two samples without I/O in between are enough.
//!
//! So a kernel that idles by polling on its only CPU is not suspected: standing still with interrupts on is no proof
//! there. It is if all other CPUs have been taken offline *and* it polls: that guess would be wrong, and so may be the
//! one about a driver that waits for longer than half a second in one delay loop. The price of a wrong guess is
//! bounded: a throttled CPU is sampled at the end of each of its turns, and goes on at full speed after the first one
//! that shows it elsewhere. And each wrong guess doubles the signs that the next one takes, up to [`MOST_DOUBT`] times.
#![no_std]

#[cfg(test)]
extern crate std;

pub mod lease;
mod sample;
mod streak;

pub use sample::{CODE_BYTES, Circumstances, LOOP_BYTES, STACK_BYTES, Sample, Sign};

use streak::Streak;

/// Interval in milliseconds at which a vCPU that never waits is sampled.
pub const SAMPLE_MS: u64 = 80;
/// So many signs of a kind are enough.
pub const ENOUGH: u32 = 5;
/// Doubt where vCPUs that have halted with interrupts off may only wait for a lock that this one holds: some 13 seconds
/// of samples, longer than any kernel holds one.
pub const WAIT_DOUBT: u32 = 5;
/// Number of wrong guesses that each double [`ENOUGH`]; further ones do not.
pub const MOST_DOUBT: u32 = 6;
/// Diagnosis of a vCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Diagnosis {
    /// Its kernel has panicked: it only waits for the time to pass, and nothing else in its guest can run.
    Panicked,
    /// It spins with interrupts off.
    Hung,
}

/// Result of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// Nothing.
    Unremarkable,
    /// It may spin: record the address of the next instruction that reads the clock ([`Sample::clock_read_at`]).
    Suspect,
    /// It spins.
    Spins(Diagnosis),
    /// It was reported to spin, and does not.
    Recovered,
}

/// One vCPU as it is watched. Time is in ticks of the caller's clock.
#[derive(Clone, Debug)]
pub struct Watch {
    ticks_per_ms: u64,
    /// Longest time in ticks for which interrupts may be off; `None`: for ever.
    hung_after: Option<u64>,
    next: Option<u64>,
    streak: Option<Streak>,
    diagnosis: Option<Diagnosis>,
    /// Wrong guesses so far, up to [`MOST_DOUBT`].
    doubt: u32,
}

impl Watch {
    /// A CPU that has not run yet. It hangs after `hung_ms` milliseconds with interrupts off; 0 means never.
    pub const fn new(ticks_per_ms: u64, hung_ms: u64) -> Self {
        let ticks_per_ms = if ticks_per_ms == 0 { 1 } else { ticks_per_ms };
        let hung_after = if hung_ms == 0 { None } else { Some(ticks_per_ms.saturating_mul(hung_ms)) };
        Self { ticks_per_ms, hung_after, next: None, streak: None, diagnosis: None, doubt: 0 }
    }

    /// Returns when to take the next sample, of a CPU that goes on running at `now`.
    #[inline]
    pub fn due(&mut self, now: u64) -> u64 {
        match self.next {
            Some(next) => next,
            None => self.postpone(now),
        }
    }

    /// Notes that it waits for an interrupt, as a healthy CPU does. Returns whether it was thought to spin.
    #[inline]
    pub fn idle(&mut self) -> bool {
        self.next = None;
        self.streak = None;
        self.withdraw()
    }

    /// Notes that it goes on after it stood still with its guest, paused: it did not spin meanwhile. A diagnosis from
    /// before stays.
    pub fn resume(&mut self) {
        if self.diagnosis.is_none() {
            self.next = None;
            self.streak = None;
        }
    }

    /// Returns its diagnosis, until it recovers.
    pub fn diagnosis(&self) -> Option<Diagnosis> {
        self.diagnosis
    }

    /// Returns whether it seems to count down to something: it spins in a loop that reads the clock, and takes no
    /// interrupt.
    pub fn counts_down(&self) -> bool {
        self.streak.as_ref().is_some_and(|streak| streak.clock_loops > 0 && streak.masked_since.is_some())
    }

    /// Judges a sample.
    pub fn sample(&mut self, sample: &Sample, around: Circumstances) -> Finding {
        self.postpone(sample.now);
        let is_diagnosed = self.diagnosis.is_some();
        let goes_on = self.streak.as_mut().is_some_and(|streak| streak.takes(sample, is_diagnosed));
        if !goes_on {
            self.streak = (sample.cpl == 0).then(|| Streak::from(sample));
        }
        match self.diagnosis {
            Some(diagnosis) if goes_on && self.still_holds(diagnosis, around) => Finding::Unremarkable,
            Some(_) => {
                self.withdraw();
                Finding::Recovered
            }
            None => {
                self.diagnosis = self.streak.as_ref().filter(|_| goes_on).and_then(|it| self.judge(it, sample, around));
                self.diagnosis.map_or(self.suspicion(), Finding::Spins)
            }
        }
    }

    fn judge(&self, streak: &Streak, last: &Sample, around: Circumstances) -> Option<Diagnosis> {
        let is_alone = !around.others_can_run;
        let enough = ENOUGH << self.doubt.max(if around.others_may_be_woken { WAIT_DOUBT } else { 0 });
        let waits = is_alone && streak.clock_loops >= enough;
        let stands_still = is_alone && around.others_halted_for_good && streak.stands_still >= enough;
        let is_over = |limit| streak.masked_since.is_some_and(|since| last.now.saturating_sub(since) >= limit);
        if around.has_reported || waits || stands_still {
            Some(Diagnosis::Panicked)
        } else {
            self.hung_after.is_some_and(is_over).then_some(Diagnosis::Hung)
        }
    }

    /// Withdraws the diagnosis, if there was one.
    fn withdraw(&mut self) -> bool {
        let was_wrong = self.diagnosis.take().is_some();
        self.doubt = (self.doubt + u32::from(was_wrong)).min(MOST_DOUBT);
        was_wrong
    }

    /// Returns true if the diagnosis of a CPU that has not moved since still holds in the present circumstances.
    fn still_holds(&self, diagnosis: Diagnosis, around: Circumstances) -> bool {
        match diagnosis {
            Diagnosis::Panicked => around.has_reported || !around.others_can_run,
            Diagnosis::Hung => self.streak.as_ref().is_some_and(|streak| streak.masked_since.is_some()),
        }
    }

    /// Only kernels are suspected.
    fn suspicion(&self) -> Finding {
        if self.streak.is_some() { Finding::Suspect } else { Finding::Unremarkable }
    }

    fn postpone(&mut self, now: u64) -> u64 {
        let next = now.saturating_add(self.ticks_per_ms.saturating_mul(SAMPLE_MS));
        self.next = Some(next);
        next
    }
}

#[cfg(test)]
mod tests;
