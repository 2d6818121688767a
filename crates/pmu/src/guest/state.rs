// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest's counters as one image leaves them and the next goes on with them.

use super::numbering::{cut, general, global_bit};
use super::saved::{BadState, State};
use super::{Config, Vendor, VirtualPmu, slots};
use crate::Backend;
use crate::amd::number as amd;
use crate::intel::number as intel;

impl<B: Backend> VirtualPmu<B> {
    /// The state after so many ticks. While they are on a CPU's counters, these must not be asked twice what has
    /// overflowed: such a guest is switched out first.
    pub fn state(&self, ticks: u64) -> State
    where
        B: Clone,
    {
        let mut now = self.clone();
        now.run_until(ticks);
        now.state_now()
    }

    fn state_now(&mut self) -> State {
        State {
            selects: self.selects,
            values: self.bank.values(),
            fixed_control: self.fixed_control,
            global_control: self.global_control,
            global_status: self.global_status,
            debug_control: self.debug_control,
            interrupts: self.interrupts,
        }
    }

    /// Counters in a saved state, not switched in: what the guest could have written, and nothing else.
    ///
    /// # Errors
    /// [`BadState`] names what it could not.
    pub fn from_state(config: &Config, backend: B, state: &State) -> Result<Self, BadState> {
        let mut all = Self::new(config, backend);
        let mut set = |name, number, value| match (value, all.write(number, value, 0)) {
            // Registers that it does not have are zero.
            (0, Err(_)) => Ok(()),
            (_, written) => written
                .map_err(|_| BadState(name))
                .and_then(|()| if all.read(number, 0) == Ok(value) { Ok(()) } else { Err(BadState(name)) }),
        };
        let (select, stride, global) = match config.vendor {
            Vendor::Intel => (intel::SELECT, 1, intel::GLOBAL_CONTROL),
            Vendor::Amd => (amd::SELECT, 2, amd::GLOBAL_CONTROL),
        };
        for (number, value) in (select..).step_by(stride).zip(state.selects) {
            set("pmu.selects", number, value)?;
        }
        set("pmu.global_control", global, state.global_control)?;
        set("pmu.fixed_control", intel::FIXED_CONTROL, state.fixed_control)?;
        set("pmu.debug_control", 0x1d9, state.debug_control)?;
        let is_there = |slot: usize| slot < general(config.vendor) || config.vendor == Vendor::Intel && slot < 11;
        for (slot, value) in state.values.into_iter().enumerate() {
            if value != cut(value) || value != 0 && !is_there(slot) {
                return Err(BadState("pmu.values"));
            }
            all.bank.write(slot, value);
        }
        let possible = slots(!0).filter(|&slot| is_there(slot)).fold(0, |all, slot| all | 1 << global_bit(slot));
        if state.global_status & !possible != 0 {
            return Err(BadState("pmu.global_status"));
        }
        (all.global_status, all.interrupts) = (state.global_status, state.interrupts);
        Ok(all)
    }
}
