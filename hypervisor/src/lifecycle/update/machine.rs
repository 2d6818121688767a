// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine as an update's protocol sees it on the calling CPU ([`Platform`]): in the old image, and in the new one.

use ::update::platform::{Clock, Cpu, Platform, Problem};
use ::update::trial::{Stamp, TrialPage};

use super::problem;
use crate::arch::switch_pages::trial::Return;
use crate::arch::tsc::Tsc;
use crate::arch::{apic, cpu, percpu, watchdog};

/// The calling CPU's machine.
pub struct Machine<'a> {
    /// The CPU's number.
    pub index: u32,
    /// The page in which it notes its steps; `None` in a rehearsal.
    page: Option<&'a TrialPage>,
    /// The event by which it came back from the new image last.
    end: Option<Return>,
}

impl<'a> Machine<'a> {
    /// The machine of the CPU `index`, which notes its steps on this page.
    pub const fn new(index: u32, page: Option<&'a TrialPage>) -> Self {
        Self { index, page, end: None }
    }

    /// The CPU came back from the new image for this reason.
    pub fn note_end(&mut self, end: Option<Return>) {
        self.end = end;
    }
}

impl Clock for Machine<'_> {
    #[inline]
    fn now(&self) -> u64 {
        Tsc.now()
    }

    fn ticks(&self, us: u64) -> u64 {
        Tsc.ticks(us)
    }
}

impl Platform for Machine<'_> {
    fn interrupt(&self, cpu: Cpu) {
        percpu::wake(cpu.index);
    }

    fn send_nmi(&self, cpu: Cpu) {
        watchdog::expect_nmi();
        apic::send_nmi(cpu.apic_id);
    }

    fn stamp(&self, step: Stamp) {
        if let Some(page) = self.page {
            page.stamp(step, cpu::tsc());
        }
    }

    fn note(&self, problem: Problem) {
        match problem {
            Problem::TimedOut => {
                problem::note(self.index, "the new image hangs, or has waited too long for this CPU");
            }
            Problem::Failed => problem::note_failure(self.index, self.end, self.page),
        }
    }
}
