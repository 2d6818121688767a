// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest's counters as an observer outside the guest is shown them. Reading them changes nothing that the guest can
//! see.

use super::numbering::{INTEL_GENERAL, global_bit};
use super::shown::{Counts, View};
use super::{VirtualPmu, intel_registers, slots};
use crate::event::{Modes, What, select};
use crate::{Backend, Counter};

impl<B: Backend> VirtualPmu<B> {
    /// Every counter that has an event, after so many ticks. Overflows by then are still reported to the guest.
    pub fn views(&mut self, ticks: u64) -> impl Iterator<Item = View> {
        self.run_until(ticks);
        slots(!0).filter_map(|slot| self.view(slot))
    }

    /// A slot's, if it has an event.
    pub fn view(&mut self, slot: usize) -> Option<View> {
        let (what, modes, is_enabled) = self.programmed(slot)?;
        let is_let = self.global_control & 1 << global_bit(slot) != 0;
        let counts = match (is_enabled && is_let, self.bank.on_counters() & 1 << slot != 0) {
            (false, _) => Counts::Stopped,
            (true, true) => Counts::Truly,
            (true, false) => Counts::Never,
        };
        let counter = match slot.checked_sub(INTEL_GENERAL) {
            Some(fixed) => Counter::fixed(fixed as u8),
            None => Counter::general(slot as u8),
        };
        Some(View { counter, what, modes, counts, value: self.bank.read(slot), overflows: self.overflows[slot] })
    }

    /// Returns the event and modes in a slot's registers, and whether they enable it.
    fn programmed(&self, slot: usize) -> Option<(What, Modes, bool)> {
        if let Some(fixed) = slot.checked_sub(INTEL_GENERAL) {
            let (event, _) = intel_registers::fixed_event(self.fixed_control, fixed)?;
            return Some((event.what, event.modes, true));
        }
        let value = self.selects[slot];
        let event = select::event(value, self.what(select::number(value)));
        (value != 0).then_some((event.what, event.modes, value & select::ENABLE != 0))
    }
}
