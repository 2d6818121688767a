// SPDX-License-Identifier: MIT OR Apache-2.0
//! An interrupt's way from its message to its end (Intel SDM vol. 3, section 11.8).

use super::local_vector::LocalVector;
use super::registers::{FIRST_LEGAL_VECTOR, SOFTWARE_ENABLE, error};
use super::{Acceptance, Action, Lapic};
use crate::devices::{DeliveryMode, InterruptMessage};

/// Bits of a priority or a vector that interrupts are compared by.
const CLASS: u8 = 0xf0;

impl Lapic {
    /// Takes a message that [`matches`](Self::matches) this APIC.
    #[inline]
    pub fn accept(&mut self, message: &InterruptMessage) -> Acceptance {
        if !self.is_enabled() {
            return Acceptance::Ignored;
        }
        match message.mode {
            DeliveryMode::Fixed | DeliveryMode::LowestPriority => self.accept_vector(message.vector, message.is_level),
            DeliveryMode::Nmi => Acceptance::Nmi,
            DeliveryMode::Init => Acceptance::Init,
            DeliveryMode::Startup => Acceptance::Startup(message.vector),
            DeliveryMode::Smi | DeliveryMode::ExternalInterrupt => Acceptance::Ignored,
        }
    }

    /// The vector that would interrupt the CPU now, were its interrupts enabled.
    #[inline]
    pub fn pending(&self) -> Option<u8> {
        // Above a class is above its last vector.
        let holding_back = self.state.task_priority.max(self.highest_in_service) | !CLASS;
        let is_above = self.highest_requested > holding_back;
        if is_above && self.is_software_enabled() { Some(self.highest_requested) } else { None }
    }

    /// Returns whether a vector would be [`pending`](Self::pending), were the task's priority lower.
    #[inline]
    pub fn waits_for_task_priority(&self) -> bool {
        let is_above_service = self.highest_requested > self.highest_in_service | !CLASS;
        is_above_service && self.highest_requested <= self.state.task_priority | !CLASS && self.is_software_enabled()
    }

    /// The CPU takes the [`pending`](Self::pending) interrupt: its vector is in service from here to its end.
    #[inline]
    pub fn acknowledge(&mut self) -> Option<u8> {
        let vector = self.pending()?;
        self.state.requested.remove(vector);
        self.highest_requested = self.state.requested.highest().unwrap_or(0);
        self.state.in_service.insert(vector);
        self.highest_in_service = vector;
        Some(vector)
    }

    /// Requests an acknowledged interrupt again, which the CPU has not taken.
    #[cold]
    pub fn requeue(&mut self, vector: u8) {
        self.state.in_service.remove(vector);
        self.highest_in_service = self.state.in_service.highest().unwrap_or(0);
        self.state.requested.insert(vector);
        self.highest_requested = self.state.requested.highest().unwrap_or(0);
    }

    /// The highest interrupt in service ends.
    #[inline]
    pub fn end_of_interrupt(&mut self) -> Action {
        let vector = self.highest_in_service;
        if vector == 0 {
            return Action::None;
        }
        self.state.in_service.remove(vector);
        self.highest_in_service = self.state.in_service.highest().unwrap_or(0);
        if self.state.trigger_mode.contains(vector) { Action::EndOfInterrupt(vector) } else { Action::None }
    }

    /// The highest vector in service.
    #[inline]
    pub const fn highest_in_service(&self) -> Option<u8> {
        if self.highest_in_service == 0 { None } else { Some(self.highest_in_service) }
    }

    /// Returns whether only this APIC would notice the end of the interrupt in service: it is edge-triggered, the
    /// only one, and none waits for its end. A guest may then be shown that it need not write the register (KVM's
    /// paravirtual end of interrupt); [`end_of_interrupt`](Self::end_of_interrupt) is still called for it, later.
    #[inline]
    pub fn eoi_may_be_skipped(&self) -> bool {
        let vector = self.highest_in_service;
        vector != 0
            && self.highest_requested == 0
            && !self.state.trigger_mode.contains(vector)
            && self.state.in_service.is_only(vector)
    }

    /// Returns what an interrupt must exceed, in bits 4–7: the higher of the task's priority and that of the interrupt
    /// in service. Also what lowest-priority delivery compares.
    #[inline]
    pub const fn processor_priority(&self) -> u8 {
        let (task, service) = (self.state.task_priority, self.highest_in_service & CLASS);
        if task & CLASS >= service { task } else { service }
    }

    /// CR8: bits 4–7 of the task's priority.
    #[inline]
    pub const fn task_priority(&self) -> u8 {
        self.state.task_priority >> 4
    }

    /// Writes CR8 (its low four bits count).
    #[inline]
    pub const fn set_task_priority(&mut self, class: u8) {
        self.state.task_priority = class << 4;
    }

    /// Returns whether software has enabled the APIC; otherwise it takes NMI, INIT and start-up only.
    #[inline]
    pub const fn is_software_enabled(&self) -> bool {
        self.state.spurious & SOFTWARE_ENABLE != 0
    }

    #[inline]
    pub(super) fn accept_vector(&mut self, vector: u8, is_level: bool) -> Acceptance {
        if !self.is_software_enabled() {
            return Acceptance::Ignored;
        }
        if vector < FIRST_LEGAL_VECTOR {
            self.record_error(error::RECEIVE_ILLEGAL_VECTOR);
            return Acceptance::Ignored;
        }
        self.request(vector, is_level);
        Acceptance::Requested
    }

    #[inline]
    fn request(&mut self, vector: u8, is_level: bool) {
        self.state.requested.insert(vector);
        self.highest_requested = self.highest_requested.max(vector);
        if is_level {
            self.state.trigger_mode.insert(vector);
        } else {
            self.state.trigger_mode.remove(vector);
        }
    }

    /// Notes an error for the next sample of the error status, and raises the error interrupt. Should that one's own
    /// vector be illegal, this is one more error, but no further interrupt.
    #[cold]
    pub(super) fn record_error(&mut self, bit: u32) {
        self.state.errors_pending |= bit;
        let Some(vector) = self.local_vector(LocalVector::Error).unmasked_vector() else { return };
        if vector < FIRST_LEGAL_VECTOR {
            self.state.errors_pending |= error::RECEIVE_ILLEGAL_VECTOR;
        } else {
            self.request(vector, false);
        }
    }
}
