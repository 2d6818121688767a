// SPDX-License-Identifier: MIT OR Apache-2.0
//! A CPU's way through the blackout: its acts ([`Act`]) as the loop that holds its guests carries them out.

use alloc::string::String;
use core::sync::atomic::Ordering;

use ::update::outbound::{Act, Back, Outbound};
use ::update::trial::{Stamp, word};

use super::HostBlackout;
use crate::arch::switch_pages::trial::Return;
use crate::arch::{cpu, trap};
use crate::kernel::timeline::{self, Name};
use crate::lifecycle::update::machine::Machine;
use crate::lifecycle::update::problem;

/// One CPU on its way.
pub struct Way<'a> {
    blackout: &'a HostBlackout,
    outbound: Outbound,
    machine: Machine<'a>,
}

impl HostBlackout {
    /// The CPU `index` comes to it: once, and only if it takes part.
    pub fn enter(&self, index: u32) -> Option<Way<'_>> {
        let outbound = match self.staged {
            Some(_) => Outbound::begin(index, &self.blackout),
            None => Outbound::rehearse(index, &self.blackout),
        }?;
        let page = self.staged.as_ref().and_then(|staged| staged.switch_pages.trial_page(index));
        Some(Way { blackout: self, outbound, machine: Machine::new(index, page) })
    }
}

impl Way<'_> {
    /// Returns what this CPU does next.
    pub fn next(&mut self) -> Act {
        self.outbound.next(&self.blackout.blackout, self.blackout.takeover(), &self.machine)
    }

    /// Notes whether this CPU has saved its guests.
    pub fn saved(&mut self, saved: &Result<(), String>) {
        if let Err(why) = saved
            && self.blackout.staged.is_some()
        {
            problem::note(self.machine.index, why);
        }
        self.outbound.saved(saved.is_ok());
    }

    /// Lends the calling CPU to the new image until that or a trap gives it back.
    pub fn lend(&mut self) {
        let staged = self.blackout.staged.as_ref();
        let end = staged.and_then(|staged| staged.switch_pages.resume_trial(self.machine.index));
        self.outbound.returned(match end {
            Some(Return::Interrupt(trap::vector::NMI)) => Back::Nmi,
            Some(Return::Interrupt(vector)) => {
                trap::deliver(vector);
                Back::Interrupt
            }
            Some(Return::Word(word::GOES_BACK, _)) => Back::GoesBack,
            _ => Back::Failed,
        });
        self.machine.note_end(end);
    }

    /// Records on the timeline that the calling CPU is back.
    pub fn note_return(&self) {
        let Some(staged) = &self.blackout.staged else { return };
        let now = cpu::tsc();
        let page = staged.switch_pages.trial_page(self.machine.index);
        let left = page.map_or(now, |page| page.stamps[Stamp::Left as usize].load(Ordering::Relaxed));
        timeline::spent(Name::UpdateRolledBack, staged.hand_over.generation as u32, left, now);
    }
}
