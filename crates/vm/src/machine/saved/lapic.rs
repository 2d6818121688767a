// SPDX-License-Identifier: MIT OR Apache-2.0
//! A local APIC's registers in the hand-over's words.

use handover::state;

use crate::devices::StateError;
use crate::devices::lapic::{Lapic, LapicState, VectorSet};

pub fn save(lapic: &Lapic, into: &mut state::Lapic) {
    let from = lapic.borrow_state();
    *into = state::Lapic {
        apic_base: from.apic_base.into(),
        requested: from.requested.0.map(Into::into),
        in_service: from.in_service.0.map(Into::into),
        trigger_mode: from.trigger_mode.0.map(Into::into),
        timer_deadline: from.timer_deadline.into(),
        interrupt_command: from.interrupt_command.into(),
        id: from.id.into(),
        spurious: from.spurious.into(),
        local_vectors: from.local_vectors.map(Into::into),
        initial_count: from.initial_count.into(),
        divide: from.divide.into(),
        logical_destination: from.logical_destination.into(),
        destination_format: from.destination_format.into(),
        error_status: from.error_status.into(),
        errors_pending: from.errors_pending.into(),
        task_priority: u32::from(from.task_priority).into(),
        zero: 0.into(),
    };
}

pub fn restored(from: &state::Lapic) -> Result<Lapic, StateError> {
    let refused = |_| StateError { field: "lapic.task_priority", reason: "more than eight bits" };
    Lapic::from_state(LapicState {
        apic_base: from.apic_base.get(),
        requested: VectorSet(from.requested.map(|word| word.get())),
        in_service: VectorSet(from.in_service.map(|word| word.get())),
        trigger_mode: VectorSet(from.trigger_mode.map(|word| word.get())),
        timer_deadline: from.timer_deadline.get(),
        interrupt_command: from.interrupt_command.get(),
        id: from.id.get(),
        spurious: from.spurious.get(),
        local_vectors: from.local_vectors.map(|entry| entry.get()),
        initial_count: from.initial_count.get(),
        divide: from.divide.get(),
        logical_destination: from.logical_destination.get(),
        destination_format: from.destination_format.get(),
        error_status: from.error_status.get(),
        errors_pending: from.errors_pending.get(),
        task_priority: u8::try_from(from.task_priority.get()).map_err(refused)?,
    })
}
