// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest's status, written by the CPUs that change it and read by all others.

use alloc::string::String;

use wire::{EventKind, VmState};

use super::{Guest, Status};
use crate::arch::timer;
use crate::guests::events::record;

impl Guest {
    /// Returns its status.
    pub fn status(&self) -> Status {
        self.status.lock().clone()
    }

    /// Notes what it does from now on.
    pub fn set_state(&self, state: VmState, reason: Option<String>) {
        *self.status.lock() = Status { state, since_ns: timer::uptime_ns(), reason };
    }

    /// Notes that it has ended, and records the event. A reader that sees the end finds the event recorded: a host that
    /// powers off once all guests have ended does not leave it behind.
    pub fn note_end(&self, state: VmState, reason: Option<String>, event: EventKind) {
        let mut status = self.status.lock();
        *status = Status { state, since_ns: timer::uptime_ns(), reason };
        record(event);
    }

    /// Returns what it does; and, where it is paused, what it did before.
    pub fn status_and_before_pause(&self) -> (Status, Option<Status>) {
        let status = self.status();
        let before = self.before_pause.lock().clone().filter(|_| status.state == VmState::Paused);
        (status, before)
    }

    /// Continues with the status from another image. Before any vCPU of it runs.
    pub fn adopt_status(&self, status: Status, before_pause: Option<Status>) {
        *self.status.lock() = status;
        *self.before_pause.lock() = before_pause;
    }

    /// The operator pauses it. How it was is remembered: a panicked guest is none the better for a pause.
    pub fn mark_paused(&self) {
        let before = self.status();
        self.set_state(VmState::Paused, None);
        *self.before_pause.lock() = Some(before);
    }

    /// Restores its status from before the pause.
    pub fn mark_resumed(&self) {
        if self.status().state != VmState::Paused {
            return;
        }
        match self.before_pause.lock().take() {
            Some(before) if before.state != VmState::Running => *self.status.lock() = before,
            _ => self.set_state(VmState::Running, None),
        }
    }
}
