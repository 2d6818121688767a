// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads and writes of the registers, by number, for each way to reach them.
//!
//! Two ways lead here: memory (`mmio`) and MSRs (`msr`). They differ in manners: in memory, reserved bits are dropped
//! and an access to a register that does not exist is an entry in the error status; an MSR answers both with #GP.

use super::local_vector::LocalVector;
use super::registers::*;
use super::{Action, Lapic};
use crate::devices::GuestTsc;

impl Lapic {
    /// Registers that read alike in both modes; `None` for those that do not exist or cannot be read.
    pub(super) fn read_register(&self, register: u32, now: GuestTsc) -> Option<u32> {
        let of = |first: u32| (register - first) as usize;
        let value = match register {
            VERSION => VERSION_VALUE,
            TASK_PRIORITY => self.state.task_priority.into(),
            PROCESSOR_PRIORITY => self.processor_priority().into(),
            LOGICAL_DESTINATION => self.logical_destination(),
            SPURIOUS => self.state.spurious,
            IN_SERVICE..TRIGGER_MODE => self.state.in_service.register(of(IN_SERVICE)),
            TRIGGER_MODE..REQUESTED => self.state.trigger_mode.register(of(TRIGGER_MODE)),
            REQUESTED..=REQUESTED_LAST => self.state.requested.register(of(REQUESTED)),
            ERROR_STATUS => self.state.error_status,
            LOCAL_VECTORS..=LOCAL_VECTORS_LAST => self.state.local_vectors[of(LOCAL_VECTORS)],
            INITIAL_COUNT => self.state.initial_count,
            CURRENT_COUNT => self.current_count(now),
            DIVIDE => self.state.divide,
            _ => return None,
        };
        Some(value)
    }

    /// Registers that are written alike in both modes; `value` has no bit that cannot be written.
    pub(super) fn write_register(&mut self, register: u32, value: u32, now: GuestTsc) -> Action {
        match register {
            TASK_PRIORITY => self.state.task_priority = value as u8,
            ERROR_STATUS => self.state.error_status = core::mem::take(&mut self.state.errors_pending),
            SPURIOUS => return self.write_spurious(value, now),
            INITIAL_COUNT => self.set_initial_count(value, now),
            DIVIDE => self.set_divide(value, now),
            _ => match LocalVector::of_register(register) {
                Some(LocalVector::Timer) => self.set_timer_vector(value, now),
                Some(other) => self.set_local_vector(other, value),
                None => {}
            },
        }
        match register {
            INITIAL_COUNT | DIVIDE | LOCAL_VECTORS => Action::TimerChanged,
            _ => Action::None,
        }
    }

    /// Disabling the APIC by software masks its own interrupts; enabling it again does not unmask them.
    fn write_spurious(&mut self, value: u32, now: GuestTsc) -> Action {
        self.expire_timer(now);
        self.state.spurious = value;
        if !self.is_software_enabled() {
            self.mask_local_vectors();
        }
        Action::TimerChanged
    }
}

/// Bits that can be written, of registers that are written alike in both modes.
pub(super) fn writable_bits(register: u32) -> Option<u32> {
    match register {
        TASK_PRIORITY => Some(0xff),
        SPURIOUS => Some(SPURIOUS_MASK),
        ERROR_STATUS | INITIAL_COUNT => Some(u32::MAX),
        DIVIDE => Some(DIVIDE_MASK),
        _ => LocalVector::of_register(register).map(LocalVector::writable_bits),
    }
}
