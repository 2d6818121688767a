// SPDX-License-Identifier: MIT OR Apache-2.0
//! Access to a guest's counters beside its registers: by [`crate::not_yet_wired`] alone.

use super::VirtualPmu;
use super::numbering::slot_of;
use crate::{Backend, Counter, CounterSet};

impl<B: Backend> VirtualPmu<B> {
    /// Returns what of the counters does not concern events that are on them.
    pub fn backend_mut(&mut self) -> &mut B {
        self.bank.backend_mut()
    }

    /// See [`Bank::change_backend`].
    pub fn change_backend(&mut self, ticks: u64, change: impl FnOnce(&mut B)) {
        self.run_until(ticks);
        self.bank.change_backend(change);
    }

    /// Those of these counters that have the guest's event of the same number.
    pub fn assigned(&self, of: CounterSet) -> CounterSet {
        let is_assigned = |&counter: &Counter| slot_of(counter).is_some_and(|slot| self.bank.is_on(slot, counter));
        of.filter(is_assigned).fold(CounterSet::EMPTY, |all, counter| all.or(CounterSet::only(counter)))
    }
}
