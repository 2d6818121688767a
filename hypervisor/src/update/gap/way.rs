// SPDX-License-Identifier: MIT OR Apache-2.0
//! A processor's way through the gap: to the new image, and back if all stay. No wait is without a limit.

use alloc::string::String;
use core::sync::atomic::Ordering;

use ::update::takeover::{Takeover, Verdict, Way};
use ::update::trial::{Stamp, word};

use super::Gap;
use crate::arch::crossing::trial::Return;
use crate::arch::percpu::{self, BOOT_PROCESSOR};
use crate::arch::reminder::Reminder;
use crate::arch::{apic, cpu, timer, trap, watchdog};
use crate::kernel::timeline::{self, Name};
use crate::selftest;
use crate::update::{note_failure, note_problem};

/// How often those that have not come back are sent an NMI.
const NMI_INTERVAL_US: u64 = 500;
/// After so many of them a processor is lost, and the host with it.
const NMIS: u32 = 2_000;

impl Gap {
    /// The processor `index` has left its guests: waits until all have. `false`: they stay.
    pub fn stop(&self, index: u32) -> bool {
        self.takeover().has_stopped();
        self.wait(index, Takeover::may_save)
    }

    /// The processor `index` has saved its guests, or could not: goes to the new image once all have. Comes back if all
    /// stay.
    pub fn go(&self, index: u32, saved: &Result<(), String>) {
        match saved {
            Ok(()) => self.takeover().has_saved(),
            Err(problem) => {
                if self.staged.is_some() {
                    note_problem(index, problem);
                }
                self.takeover().roll_back(index);
            }
        }
        if self.wait(index, Takeover::may_go) {
            self.stamp(index, Stamp::Gone);
            self.visit(index);
        }
    }

    /// The processor `index` is back, or has not left: brings the others back if it is the first.
    pub fn come_back(&self, index: u32) {
        let takeover = self.takeover();
        let now = cpu::tsc();
        self.returned.fetch_max(now, Ordering::AcqRel);
        if let Some(staged) = &self.staged {
            let page = staged.crossing.trial_page(index);
            let left = page.map_or(now, |page| page.stamps[Stamp::Left as usize].load(Ordering::Relaxed));
            timeline::spent(Name::UpdateRolledBack, staged.parcel.generation as u32, left, now);
        }
        if let Some(part) = self.part_of(index) {
            part.is_back.store(true, Ordering::Release);
        }
        if takeover.is_back() {
            self.fetch(index);
        }
        percpu::wake(BOOT_PROCESSOR);
    }

    fn wait(&self, index: u32, way: impl Fn(&Takeover) -> Way) -> bool {
        let takeover = self.takeover();
        let mut reminder = Reminder::new();
        loop {
            match way(takeover) {
                Way::Go => return true,
                Way::Stay => return false,
                Way::Wait if cpu::tsc() > takeover.deadline() => {
                    takeover.roll_back(index);
                }
                Way::Wait => {
                    if index == BOOT_PROCESSOR && reminder.is_due() {
                        self.call_again();
                    }
                    cpu::pause();
                }
            }
        }
    }

    /// Those who have not come are told once more.
    fn call_again(&self) {
        let missing = self.parts.iter().filter(|part| !part.has_come.load(Ordering::Relaxed));
        missing.for_each(|part| percpu::wake(part.index));
    }

    /// Lends the processor to the new image. Comes back when all stay.
    fn visit(&self, index: u32) {
        let Some(staged) = &self.staged else {
            self.takeover().roll_back(index);
            return;
        };
        loop {
            let back = staged.crossing.resume_trial(index);
            let verdict = match back {
                Some(Return::Interrupt(trap::vector::NMI)) => self.end(index),
                Some(Return::Word(word::GOES_BACK, _)) => self.takeover().verdict(),
                Some(Return::Interrupt(vector)) => {
                    trap::deliver(vector);
                    Verdict::Open
                }
                _ => {
                    note_failure(index, back, staged.crossing.trial_page(index));
                    self.takeover().roll_back(index)
                }
            };
            if verdict == Verdict::RolledBack {
                return;
            }
        }
    }

    /// An NMI has ended the new image's time: another processor has sent it, or the watchdog, since nobody else could.
    fn end(&self, index: u32) -> Verdict {
        if self.takeover().verdict() == Verdict::Open {
            note_problem(index, "the new image hangs, or has waited too long for this processor");
        }
        self.takeover().roll_back(index)
    }

    /// When the first of the NMIs is sent that bring CPUs back.
    fn first_nmi_us(&self) -> u64 {
        if self.fault_point().is_some() { selftest::UPDATE_NMI_US } else { NMI_INTERVAL_US }
    }

    /// Sends NMIs to those that have not come back until all have. An NMI that finds a processor of this image is
    /// passed over.
    fn fetch(&self, index: u32) {
        let mut interval_us = self.first_nmi_us();
        for _ in 0..NMIS {
            let next = cpu::tsc() + timer::us_to_ticks(interval_us);
            interval_us = NMI_INTERVAL_US;
            while cpu::tsc() < next {
                if self.takeover().are_all_back() {
                    return;
                }
                cpu::pause();
            }
            let missing = self.parts.iter().filter(|part| !part.is_back.load(Ordering::Acquire));
            for part in missing.filter(|part| part.index != index) {
                watchdog::expect_nmi(0);
                apic::send_nmi(part.apic_id);
            }
        }
        panic!("a processor did not come back from an image on trial");
    }
}
