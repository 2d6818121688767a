// SPDX-License-Identifier: MIT OR Apache-2.0
//! A vCPU's performance counters in the hand-over's words.

use handover::state;
use pmu::guest::{BadState, INTEL_GENERAL, State};
use pmu::{SLOTS, VcpuCounters};

use crate::devices::StateError;
use crate::machine::Cpu;

// The hand-over has room for them.
const _: () = assert!(INTEL_GENERAL == state::COUNTER_SELECTS && SLOTS == state::COUNTER_VALUES);

impl Cpu {
    /// Fills the hand-over's words; all zero without counters.
    pub(super) fn save_counters(&self, ticks: u64, into: &mut state::Pmu) {
        let Some(pmu) = &self.pmu else { return };
        let from = pmu.state(ticks);
        *into = state::Pmu {
            selects: from.selects.map(Into::into),
            values: from.values.map(Into::into),
            fixed_control: from.fixed_control.into(),
            global_control: from.global_control.into(),
            global_status: from.global_status.into(),
            debug_control: from.debug_control.into(),
            interrupts: u32::from(from.interrupts).into(),
            zero: 0.into(),
        };
    }

    /// Counters like its own in a saved state.
    pub(super) fn restored_counters(&self, from: &state::Pmu) -> Result<Option<VcpuCounters>, StateError> {
        let state = State {
            selects: from.selects.map(|select| select.get()),
            values: from.values.map(|value| value.get()),
            fixed_control: from.fixed_control.get(),
            global_control: from.global_control.get(),
            global_status: from.global_status.get(),
            debug_control: from.debug_control.get(),
            interrupts: from.interrupts.get() != 0,
        };
        let refused = |field| StateError { field, reason: "no counters of this guest can be so" };
        match &self.pmu {
            Some(pmu) => pmu.restored(&state).map(Some).map_err(|BadState(field)| refused(field)),
            None if state == State::default() => Ok(None),
            None => Err(refused("pmu")),
        }
    }
}
