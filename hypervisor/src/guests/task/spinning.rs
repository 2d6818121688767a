// SPDX-License-Identifier: MIT OR Apache-2.0
//! A vCPU's stretches of running, watched: one that only spins is reported, and rests if it is to be
//! throttled.

use watch::{Circumstances, Finding};

use super::{Pause, Task};
use crate::arch::cpu;
use crate::arch::percpu::PerCpu;
use crate::guests::watching::{self, StretchEnd};

impl Task {
    /// Runs it until it waits, its guest's upper limit is reached, or the CPU has something else to do. The host's
    /// timer fires at `others_alarm` at the latest.
    pub fn run(&mut self, me: &PerCpu, others_alarm: Option<u64>) -> Pause {
        let began = cpu::tsc();
        self.note_allowed(began);
        let guest = &self.instance.guest;
        let stop = match guest.settings.cap_stop(began, guest.config.vcpus) {
            Ok(stop) => stop,
            Err(until) => {
                self.held_since = Some(began);
                return self.rest(until);
            }
        };
        let pause = self.run_watched(me, others_alarm.into_iter().chain(stop).min(), began);
        if stop.is_some() {
            self.instance.guest.settings.charge(cpu::tsc().saturating_sub(began));
        }
        pause
    }

    /// Notes that its guest's limit does not hold it any more: meanwhile it has waited.
    pub(super) fn note_allowed(&mut self, now: u64) {
        if let Some(since) = self.held_since.take() {
            self.stolen_before = self.stolen_before.saturating_add(now.saturating_sub(since));
        }
    }

    fn run_watched(&mut self, me: &PerCpu, others_alarm: Option<u64>, began: u64) -> Pause {
        let own_stop = self.watched.begin_stretch(began);
        let pause = self.run_until(me, others_alarm.into_iter().chain(own_stop).min());
        if pause == Pause::Idle {
            if self.watched.end_stretch_idle() {
                self.note_recovery();
            }
            return pause;
        }
        let now = cpu::tsc();
        match self.watched.end_stretch(now) {
            StretchEnd::NotYet => pause,
            StretchEnd::Due => self.check_spin(now).map_or(pause, |until| self.rest(until)),
            StretchEnd::Spent(until) => {
                self.check_spin(now);
                if self.watched.is_throttled() { self.rest(until) } else { pause }
            }
        }
    }

    /// Checks whether it spins. Returns until when it rests if it is throttled from now on.
    #[cold]
    fn check_spin(&mut self, now: u64) -> Option<u64> {
        let guest = self.instance.guest.clone();
        let sample = watching::sample(&*self.vcpu, &mut self.cpu, now);
        let others = self.instance.machine.others(&self.cpu);
        let has_reported = guest.health.has_reported();
        let around = Circumstances {
            has_reported,
            others_can_run: others.can_run,
            others_halted_for_good: others.halted_for_good,
            others_may_be_woken: others.may_be_woken,
        };
        match self.watched.judge(&sample, around) {
            Finding::Unremarkable => {}
            Finding::Suspect => self.vcpu.watch_clock_reads(true),
            Finding::Recovered => self.note_recovery(),
            Finding::Spins(diagnosis) => {
                guest.note_spin(self.index as u32, diagnosis);
                let (until, is_news) = self.watched.throttle(now)?;
                guest.is_throttled(self.index as u32, is_news);
                return Some(until);
            }
        }
        None
    }

    fn note_recovery(&mut self) {
        let was_throttled = self.watched.release();
        self.instance.guest.note_recovery(self.index as u32, was_throttled);
    }

    pub(super) fn rest(&mut self, until: u64) -> Pause {
        self.watched.rest(until);
        Pause::Rest
    }
}
