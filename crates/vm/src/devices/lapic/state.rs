// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state of a local APIC that is handed over, and its valid values.

use super::local_vector::{LOCAL_VECTOR_COUNT, LocalEntry, LocalVector};
use super::registers::*;
use super::timer_mode::TimerMode;
use super::{Mode, VectorSet};
use crate::devices::StateError;

/// Everything about the local APIC that outlives a hypervisor image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LapicState {
    /// IA32_APIC_BASE.
    pub apic_base: u64,
    /// Vectors requested.
    pub requested: VectorSet,
    /// Vectors in service.
    pub in_service: VectorSet,
    /// Vectors whose last interrupt was level-triggered.
    pub trigger_mode: VectorSet,
    /// The timer is due at this value of the guest's TSC; 0: stopped.
    pub timer_deadline: u64,
    /// Interrupt command register; in xAPIC mode the destination is in bits 56–63.
    pub interrupt_command: u64,
    /// The identifier.
    pub id: u32,
    /// Spurious interrupt vector register.
    pub spurious: u32,
    /// The local vector table: timer, thermal, performance, pins 0 and 1, error.
    pub local_vectors: [u32; LOCAL_VECTOR_COUNT],
    /// Timer's initial count.
    pub initial_count: u32,
    /// Timer's divider register.
    pub divide: u32,
    /// Logical destination register of xAPIC mode; zero in x2APIC mode.
    pub logical_destination: u32,
    /// Destination format register; all ones in x2APIC mode.
    pub destination_format: u32,
    /// Error status register as it reads.
    pub error_status: u32,
    /// Errors since it was last written.
    pub errors_pending: u32,
    /// Task priority register.
    pub task_priority: u8,
}

impl LapicState {
    /// After power-up or INIT (Intel SDM vol. 3, sections 11.4.7.1 and 11.4.7.3).
    pub(super) const fn after_reset(id: u32, apic_base: u64) -> Self {
        Self {
            apic_base,
            requested: VectorSet::EMPTY,
            in_service: VectorSet::EMPTY,
            trigger_mode: VectorSet::EMPTY,
            timer_deadline: 0,
            interrupt_command: 0,
            id,
            spurious: SPURIOUS_RESET,
            local_vectors: [LocalEntry::MASKED; LOCAL_VECTOR_COUNT],
            initial_count: 0,
            divide: 0,
            logical_destination: 0,
            destination_format: u32::MAX,
            error_status: 0,
            errors_pending: 0,
            task_priority: 0,
        }
    }

    /// x2APIC mode has no destination format, makes its own logical destination, and the command's destination is not
    /// kept on the way there.
    pub(super) fn reset_xapic_addressing(&mut self) {
        self.logical_destination = 0;
        self.destination_format = u32::MAX;
        self.interrupt_command &= u64::from(u32::MAX);
    }

    /// Checks that a local APIC can be in this state.
    pub(super) fn validate(&self) -> Result<(), StateError> {
        let refuse = |field, reason| Err(StateError { field, reason });
        let Ok(mode) = Mode::of(self.apic_base) else {
            return refuse("lapic.apic_base", "reserved bits, or x2APIC mode without the enable bit");
        };
        let sets = [self.requested, self.in_service, self.trigger_mode];
        if sets.iter().any(|set| set.0[0] & 0xffff != 0) {
            return refuse("lapic.requested", "vectors below 16 are never delivered");
        }
        // But for the task priority, which CR8 reaches without an APIC.
        let without_state = Self { task_priority: self.task_priority, ..Self::after_reset(self.id, self.apic_base) };
        if mode == Mode::Disabled && *self != without_state {
            return refuse("lapic.apic_base", "a disabled APIC keeps no state");
        }
        if let Some(field) = self.field_with_reserved_bits(mode) {
            return refuse(field, "a bit is set that always reads as zero");
        }
        self.validate_local_vectors()?;
        self.validate_timer()
    }

    fn field_with_reserved_bits(&self, mode: Mode) -> Option<&'static str> {
        let is_x2apic = mode == Mode::X2Apic;
        let command_high = (self.interrupt_command >> 32) as u32;
        let command_has_reserved = self.interrupt_command as u32 & !InterruptCommand::LOW_MASK != 0
            || !is_x2apic && command_high & !InterruptCommand::XAPIC_HIGH_MASK != 0;
        let logical_mask = if is_x2apic { 0 } else { LOGICAL_DESTINATION_MASK };
        let format_ones = if is_x2apic { u32::MAX } else { !DESTINATION_FORMAT_MASK };
        let refusals = [
            ("lapic.interrupt_command", command_has_reserved),
            ("lapic.logical_destination", self.logical_destination & !logical_mask != 0),
            ("lapic.destination_format", self.destination_format & format_ones != format_ones),
            ("lapic.spurious", self.spurious & !SPURIOUS_MASK != 0),
            ("lapic.divide", self.divide & !DIVIDE_MASK != 0),
            ("lapic.error_status", self.error_status & !error::ALL != 0),
            ("lapic.errors_pending", self.errors_pending & !error::ALL != 0),
        ];
        refusals.into_iter().find(|(_, refused)| *refused).map(|(field, _)| field)
    }

    fn validate_local_vectors(&self) -> Result<(), StateError> {
        let refuse = |reason| Err(StateError { field: "lapic.local_vectors", reason });
        for (which, value) in LocalVector::ALL.into_iter().zip(self.local_vectors) {
            if value & !which.writable_bits() != 0 {
                return refuse("a bit is set that always reads as zero");
            }
            if value & LocalEntry::MASKED == 0 && self.spurious & SOFTWARE_ENABLE == 0 {
                return refuse("unmasked while software has disabled the APIC");
            }
        }
        Ok(())
    }

    fn validate_timer(&self) -> Result<(), StateError> {
        let refuse = |reason| Err(StateError { field: "lapic.timer_deadline", reason });
        let timer = LocalEntry::from_bits(self.local_vectors[LocalVector::Timer as usize]);
        let mode = TimerMode::from_bits(timer.timer_mode());
        if self.timer_deadline == 0 || mode == TimerMode::TscDeadline {
            return Ok(());
        }
        match mode.counts() {
            false => refuse("a timer runs in the reserved mode"),
            true if self.initial_count == 0 => refuse("a timer counts down from nothing"),
            true => Ok(()),
        }
    }
}
