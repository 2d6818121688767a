// SPDX-License-Identifier: MIT OR Apache-2.0
//! Diagnosis of a guest's kernel, and the measures for one that has failed.

use alloc::format;
use alloc::string::String;
use core::sync::atomic::Ordering;

use bundle::OnPanic;
use handover::state::DeviceKind;
use vm::devices::virtio::Fault;
use watch::Diagnosis;
use wire::{EventKind, VmState};

use super::{Guest, Order};
use crate::arch::timer;
use crate::guests::events::record;

/// Shortest interval between two log lines of a guest that waits for memory.
const WAITING_REPORT_NS: u64 = 10_000_000_000;

impl Guest {
    /// Takes its kernel's report of a panic. The first one is an event; further ones are ignored.
    pub fn reports_panic(&self) {
        if self.health.has_reported.swap(true, Ordering::AcqRel) {
            return;
        }
        if self.status().state != VmState::Panicked {
            self.is_not_well(VmState::Panicked, "its kernel has reported a panic".into());
            record(EventKind::VmPanicked { name: self.config.name.clone() });
        }
        self.order(Order::GiveUp);
    }

    /// Notes a violation by its driver of a virtio device. The device reports one fault until the guest starts again.
    #[cold]
    pub fn note_driver_fault(&self, kind: u32, fault: Fault) {
        let name = &self.config.name;
        match DeviceKind::from_number(kind) {
            Some(kind) => log::warn!("guest {name}: {kind:?} needs a reset: its driver is at fault: {fault}"),
            None => log::warn!("guest {name}: a virtio device needs a reset: its driver is at fault: {fault}"),
        }
    }

    /// A vCPU waits for memory on demand that the host does not have. Logged at most once in ten seconds.
    #[cold]
    pub fn note_waits_for_memory(&self) {
        let (now_ns, name) = (timer::uptime_ns(), &self.config.name);
        let is_due = |next_ns: u64| (now_ns >= next_ns).then_some(now_ns + WAITING_REPORT_NS);
        if self.next_memory_report_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, is_due).is_ok() {
            log::warn!("guest {name}: waits for memory beyond what it is assured: no more is free; stop another guest");
        }
    }

    /// A vCPU was found to spin.
    pub fn note_spin(&self, vcpu: u32, diagnosis: Diagnosis) {
        self.health.spinning.fetch_add(1, Ordering::AcqRel);
        if self.status().state != VmState::Running {
            return;
        }
        let name = self.config.name.clone();
        match diagnosis {
            Diagnosis::Panicked => {
                let reason = format!("vCPU {vcpu} only waits, and nothing else in the guest can run");
                self.is_not_well(VmState::Panicked, reason);
                record(EventKind::VmPanicked { name });
            }
            Diagnosis::Hung => {
                let seconds = self.config.hung_s;
                let reason = format!("vCPU {vcpu} has spun with interrupts off for {seconds} s");
                self.is_not_well(VmState::Hung, reason);
                record(EventKind::VmHung { name, vcpu });
            }
        }
        self.order(Order::GiveUp);
    }

    /// A vCPU gets only a sliver of time from now on; `is_news` if that is to be reported.
    pub fn is_throttled(&self, vcpu: u32, is_news: bool) {
        if self.health.throttled.fetch_add(1, Ordering::AcqRel) == 0 {
            self.health.throttled_since_ns.store(timer::uptime_ns(), Ordering::Release);
        }
        if is_news {
            record(EventKind::VmThrottled { name: self.config.name.clone(), vcpu });
        }
    }

    /// A vCPU that was found to spin does something else.
    pub fn note_recovery(&self, vcpu: u32, was_throttled: bool) {
        if was_throttled {
            self.health.throttled.fetch_sub(1, Ordering::AcqRel);
        }
        let was_last = self.health.spinning.fetch_sub(1, Ordering::AcqRel) == 1;
        if self.health.has_reported() {
            // It prints, or counts down to its reboot: what it reported holds.
            return;
        }
        if was_last && matches!(self.status().state, VmState::Panicked | VmState::Hung) {
            self.set_state(VmState::Running, None);
        }
        record(EventKind::VmRecovered { name: self.config.name.clone(), vcpu });
    }

    fn is_not_well(&self, state: VmState, reason: String) {
        let name = &self.config.name;
        let reason = match self.settings.on_panic() {
            OnPanic::Dump => format!("{reason}; held for `baton vm dump {name}`, then resume, reset or stop it"),
            _ => reason,
        };
        self.set_state(state, Some(reason));
    }
}
