// SPDX-License-Identifier: MIT OR Apache-2.0
//! Translation of a guest's registers to settings of the bank of events behind them.

use super::numbering::{INTEL_GENERAL, global_bit, slots_of_global};
use super::{Vendor, VirtualPmu, intel_registers};
use crate::bank::slots;
use crate::event::{What, select};
use crate::{Backend, Event};

impl<B: Backend> VirtualPmu<B> {
    /// All that it stops or starts at once, as a kernel does at each of its interrupts.
    pub(super) fn set_global_control(&mut self, value: u64) {
        let (stopped, let_go) = (self.global_control & !value, value & !self.global_control);
        self.global_control = value;
        self.bank.rest_all(slots_of_global(stopped));
        let (mut wanted, mut others) = (0, 0);
        for slot in slots(slots_of_global(let_go)) {
            let setting = self.setting(slot);
            wanted |= u16::from(setting != 0) << slot;
            others |= u16::from(setting != self.counted[slot]) << slot;
        }
        let others = wanted & others | self.bank.resume_all(wanted & !others);
        slots(others).for_each(|slot| self.count_as(slot, self.setting(slot)));
    }

    #[inline(always)]
    pub(super) fn set_select(&mut self, at: usize, value: u64) {
        if self.selects[at] != value {
            self.selects[at] = value;
            self.count_as(at, self.select_setting(at));
        }
    }

    /// Returns what the registers state of a slot; 0 if it is not to count.
    #[inline(always)]
    fn setting(&self, slot: usize) -> u64 {
        match slot.checked_sub(INTEL_GENERAL) {
            Some(fixed) => self.fixed_setting(fixed),
            None => self.select_setting(slot),
        }
    }

    /// A slot counts the event of its setting. The setting is decoded only where it differs from the last one counted.
    #[inline(always)]
    pub(super) fn count_as(&mut self, slot: usize, setting: u64) {
        if setting == 0 {
            self.bank.rest(slot);
        } else if self.counted[slot] != setting || !self.bank.resume(slot) {
            self.recount(slot, setting);
        }
    }

    #[inline(never)]
    fn recount(&mut self, slot: usize, setting: u64) {
        match self.event(slot) {
            None => self.bank.rest(slot),
            Some(event) => {
                self.bank.count(slot, Some(&event));
                self.counted[slot] = setting;
            }
        }
    }

    /// Returns what the registers state of a general slot, whether it interrupts apart; 0 if it is not to count.
    #[inline(always)]
    fn select_setting(&self, slot: usize) -> u64 {
        let is_on = self.selects[slot] & select::ENABLE != 0 && self.global_control & 1 << slot != 0;
        if is_on { self.selects[slot] & !select::INTERRUPT } else { 0 }
    }

    /// The same of one of fixed purpose.
    #[inline(always)]
    pub(super) fn fixed_setting(&self, fixed: usize) -> u64 {
        let is_on = self.global_control & 1 << global_bit(INTEL_GENERAL + fixed) != 0;
        if is_on { intel_registers::fixed_modes(self.fixed_control, fixed) } else { 0 }
    }

    /// The event that the registers name for a slot, if it has a mode to count in and may be counted.
    fn event(&self, slot: usize) -> Option<Event> {
        let (event, number) = match slot.checked_sub(INTEL_GENERAL) {
            Some(fixed) => intel_registers::fixed_event(self.fixed_control, fixed)?,
            None => {
                let number = select::number(self.selects[slot]);
                (select::event(self.selects[slot], self.what(number)), number)
            }
        };
        (!event.modes.is_empty() && self.filter.allows(number) && !self.is_foreign(&event)).then_some(event)
    }

    /// The number means something else to the counters than to the guest.
    fn is_foreign(&self, event: &Event) -> bool {
        let is_by_number = matches!(event.what, What::Vendor { .. });
        self.bank.backend().vendor().is_some_and(|vendor| vendor != self.vendor) && is_by_number
    }

    pub(super) fn what(&self, number: (u16, u8)) -> What {
        use crate::{amd as host_amd, intel as host_intel};
        let (cycles, instructions) = match self.vendor {
            Vendor::Intel => (host_intel::CYCLES, host_intel::INSTRUCTIONS),
            Vendor::Amd => (host_amd::CYCLES, host_amd::INSTRUCTIONS),
        };
        match number {
            number if number == cycles => What::Cycles,
            number if number == instructions => What::Instructions,
            host_amd::REFERENCE_CYCLES if self.vendor == Vendor::Amd => What::ReferenceCycles,
            (select, unit) => What::Vendor { select, unit },
        }
    }
}
