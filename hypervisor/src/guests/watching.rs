// SPDX-License-Identifier: MIT OR Apache-2.0
//! One vCPU as it is watched: when to check it, and how little it may run once it only spins. `watch` decides what
//! follows from the samples, and `sched::throttle` how little it runs.

use bundle::OnPanic;
use sched::{Sliver, Throttle, Ticks};
use vm::machine::Cpu;
use vm::vcpu::{Gpr, Rflags, SegmentName, VcpuState};
use watch::{Circumstances, Finding, Sample, Watch};

use crate::arch::timer;
use crate::guests::guest::Guest;

/// The watch on one vCPU.
pub struct Watched {
    /// `None`: its guest is not to be watched.
    watch: Option<Watch>,
    is_to_be_throttled: bool,
    throttle: Option<Throttle>,
    /// The start of its present stretch of running.
    started: u64,
    /// A throttled one sleeps until then.
    rests_until: Option<u64>,
    /// Its first throttling is reported.
    is_reported: bool,
}

/// The outcome of a stretch of running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StretchEnd {
    /// It is not time to take a sample.
    NotYet,
    /// It is time.
    Due,
    /// It is time, and it may not run again before then.
    Spent(u64),
}

impl Watched {
    /// A CPU of this guest.
    pub fn new(guest: &Guest) -> Self {
        let on_panic = guest.settings.on_panic();
        let is_watched = on_panic != OnPanic::Ignore;
        let watch = is_watched.then(|| Watch::new(timer::us_to_ticks(1000), u64::from(guest.config.hung_s) * 1000));
        let is_to_be_throttled = on_panic == OnPanic::Throttle;
        Self { watch, is_to_be_throttled, throttle: None, started: 0, rests_until: None, is_reported: false }
    }

    /// A stretch of running begins; when it must have stopped.
    #[inline]
    pub fn begin_stretch(&mut self, now: u64) -> Option<u64> {
        (self.started, self.rests_until) = (now, None);
        match &mut self.throttle {
            Some(throttle) => Some(throttle.stop_at(Ticks(now)).0),
            None => self.watch.as_mut().map(|watch| watch.due(now)),
        }
    }

    /// The stretch is over, and the CPU waits for an interrupt. Returns whether it had been found to spin.
    #[inline]
    pub fn end_stretch_idle(&mut self) -> bool {
        self.watch.as_mut().is_some_and(Watch::idle)
    }

    /// The stretch is over, and the CPU would go on.
    #[inline]
    pub fn end_stretch(&mut self, now: u64) -> StretchEnd {
        if let Some(throttle) = &mut self.throttle {
            let ran = Ticks(now.saturating_sub(self.started));
            return throttle.charge(ran).map_or(StretchEnd::NotYet, |next| StretchEnd::Spent(next.0));
        }
        let is_due = self.watch.as_mut().is_some_and(|watch| watch.due(now) <= now);
        if is_due { StretchEnd::Due } else { StretchEnd::NotYet }
    }

    /// Notes that it goes on after it stood still with its guest.
    pub fn resume(&mut self) {
        self.watch.iter_mut().for_each(Watch::resume);
    }

    /// Judges what is seen.
    pub fn judge(&mut self, sample: &Sample, around: Circumstances) -> Finding {
        let Some(watch) = &mut self.watch else { return Finding::Unremarkable };
        let finding = watch.sample(sample, around);
        if let Some(throttle) = &mut self.throttle {
            throttle.cut(sliver_for(watch));
        }
        finding
    }

    /// It spins. If it is to be throttled from now on: until when it rests, and whether that is news.
    pub fn throttle(&mut self, now: u64) -> Option<(u64, bool)> {
        if !self.is_to_be_throttled {
            return None;
        }
        let sliver = self.watch.as_ref().map_or(Sliver::Rare, sliver_for);
        let throttle = self.throttle.insert(Throttle::new(timer::us_to_ticks(1000), sliver, Ticks(now)));
        let until = throttle.charge(Ticks(0)).map_or(now, |next| next.0);
        Some((until, !core::mem::replace(&mut self.is_reported, true)))
    }

    /// Returns whether it gets only a sliver of time.
    pub fn is_throttled(&self) -> bool {
        self.throttle.is_some()
    }

    /// Ends its throttling: it gets all its time again. Returns whether it did not have it.
    pub fn release(&mut self) -> bool {
        self.throttle.take().is_some()
    }

    /// Makes it sleep until then.
    pub fn rest(&mut self, until: u64) {
        self.rests_until = Some(until);
    }

    /// Returns the time until which it sleeps, whatever else would wake it.
    #[inline]
    pub fn rests_until(&self) -> Option<u64> {
        self.rests_until
    }

    /// Ends its sleep.
    pub fn end_rest(&mut self) {
        self.rests_until = None;
    }
}

/// A guest that counts down to its reboot is to get there in time.
fn sliver_for(watch: &Watch) -> Sliver {
    if watch.counts_down() { Sliver::EveryMillisecond } else { Sliver::Rare }
}

/// Returns what is seen of a vCPU between two stretches of running.
pub fn sample(vcpu: &dyn VcpuState, cpu: &mut Cpu, now: u64) -> Sample {
    let linear = |rip: u64| rip.wrapping_add(vcpu.segment(SegmentName::Cs).base);
    Sample {
        now,
        rip: linear(vcpu.rip()),
        rsp: vcpu.gpr(Gpr::Rsp),
        cr3: vcpu.cr3(),
        cpl: vcpu.cpl(),
        interrupts_on: vcpu.rflags().contains(Rflags::INTERRUPT),
        io: cpu.io_accesses(),
        halts: cpu.halts(),
        registers: fold(vcpu),
        clock_read_at: cpu.take_clock_read().map(linear),
    }
}

/// One word for all general purpose registers (FNV-1a's step, over words: it is one to one in each of them).
fn fold(vcpu: &dyn VcpuState) -> u64 {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x100_0000_01b3;
    Gpr::ALL.into_iter().fold(BASIS, |sum, register| (sum ^ vcpu.gpr(register)).wrapping_mul(PRIME))
}
