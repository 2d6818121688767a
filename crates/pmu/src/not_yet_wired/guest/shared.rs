// SPDX-License-Identifier: MIT OR Apache-2.0
//! Registers that the counters share with PEBS and the top-down metrics: the owner of each bit.

use super::IntelGuest;
use crate::guest::{INTEL_FIXED, INTEL_GENERAL, Refused, slot_of};
use crate::intel::number::{FIXED_CONTROL, GLOBAL_CLEAR, GLOBAL_CONTROL, SELECT};
use crate::not_yet_wired::driver::Precise;
use crate::not_yet_wired::{pebs, topdown};
use crate::{Counter, CounterSet, Msrs};

impl<M: Msrs + Clone> IntelGuest<M> {
    /// Returns what of a register that can be written back is not the counters'.
    pub(super) fn other_bits(&self, number: u32) -> u64 {
        let topdown = self.topdown.as_ref();
        match number {
            GLOBAL_CONTROL => topdown.map_or(0, |topdown| topdown.global()),
            FIXED_CONTROL => self.adaptive_fixed() | topdown.map_or(0, |topdown| topdown.field()),
            _ => select_of(number).map_or(0, |counter| self.adaptive_select(counter)),
        }
    }

    /// The counters' part first: they may refuse it.
    pub(super) fn write_shared(&mut self, number: u32, value: u64) -> Result<(), Refused> {
        let others = value & self.taken(number);
        self.pmu.write(number, value & !others, 0)?;
        match number {
            GLOBAL_CONTROL => self.topdown.iter_mut().for_each(|topdown| topdown.set_global(others)),
            GLOBAL_CLEAR => {
                self.pebs.iter_mut().for_each(|pebs| pebs.clear_status(others));
                self.topdown.iter_mut().for_each(|topdown| topdown.clear_status(others));
            }
            FIXED_CONTROL => {
                self.topdown.iter_mut().for_each(|topdown| topdown.set_field(others));
                let fixed = (0..INTEL_FIXED as u8).filter(|&number| others & pebs::fixed_adaptive(number) != 0);
                let fixed = fixed.fold(0, |all, number| all | CounterSet::only(Counter::fixed(number)).0);
                self.set_adaptive(CounterSet::first(0, INTEL_FIXED as u8), CounterSet(fixed));
            }
            _ => {
                if let Some(counter) = select_of(number) {
                    let counter = CounterSet::only(counter);
                    self.set_adaptive(counter, if others != 0 { counter } else { CounterSet::EMPTY });
                }
            }
        }
        Ok(())
    }

    /// PEBS has other counters than before, or they write other records: their events are put on counters again.
    pub(super) fn follow_pebs(&mut self) {
        let Some(pebs) = &self.pebs else { return };
        let mut precise = Precise { adaptive: self.adaptive.and(pebs.enabled()), ..Precise::default() };
        for counter in pebs.enabled() {
            if let Some(slot) = slot_of(counter) {
                precise.own[slot] = Some(counter);
            }
        }
        self.pmu.change_backend(0, |backend| backend.set_precise(&precise));
    }

    /// The bits of a register that are not the counters'.
    fn taken(&self, number: u32) -> u64 {
        let topdown = |bits: u64| if self.topdown.is_some() { bits } else { 0 };
        let pebs = |bits: u64| if self.pebs.is_some() { bits } else { 0 };
        match number {
            GLOBAL_CONTROL => topdown(topdown::GLOBAL),
            GLOBAL_CLEAR => topdown(topdown::GLOBAL) | pebs(pebs::STATUS_BUFFER),
            FIXED_CONTROL => topdown(topdown::FIXED_FIELD) | pebs(all_fixed_adaptive()),
            _ => select_of(number).map_or(0, |_| pebs(pebs::SELECT_ADAPTIVE)),
        }
    }

    fn set_adaptive(&mut self, of: CounterSet, adaptive: CounterSet) {
        let next = self.adaptive.without(of).or(adaptive);
        if self.adaptive != next {
            self.adaptive = next;
            self.follow_pebs();
        }
    }

    fn adaptive_select(&self, counter: Counter) -> u64 {
        if self.adaptive.contains(counter) { pebs::SELECT_ADAPTIVE } else { 0 }
    }

    fn adaptive_fixed(&self) -> u64 {
        let is_adaptive = |number: &u8| self.adaptive.contains(Counter::fixed(*number));
        (0..INTEL_FIXED as u8).filter(is_adaptive).fold(0, |all, number| all | pebs::fixed_adaptive(number))
    }
}

fn all_fixed_adaptive() -> u64 {
    (0..INTEL_FIXED as u8).fold(0, |all, number| all | pebs::fixed_adaptive(number))
}

fn select_of(number: u32) -> Option<Counter> {
    let at = number.checked_sub(SELECT)?;
    (at < INTEL_GENERAL as u32).then(|| Counter::general(at as u8))
}
