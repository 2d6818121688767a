// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host as a vCPU's machine reaches it.

use alloc::sync::Arc;

use vm::devices::pvpanic::PanicEvent;
use vm::devices::virtio::Fault;
use vm::machine::Host;
use vm::machine::emulate::VectorWrite;

use crate::arch::percpu::{self, PerCpu};
use crate::arch::{clock, cpu, timer, vector};
use crate::guests::forwarding::Next;
use crate::guests::guest::Guest;

/// A guest may ask for an alarm as near as it likes; the host's timer is never set nearer than this.
const NEAREST_ALARM_US: u64 = 2;

/// The part of the host that a vCPU reaches.
pub(super) struct TaskHost {
    pub(super) guest: Arc<Guest>,
    /// The time at which the host's timer must fire whatever this vCPU wants: the end of its slice, others' alarms.
    pub(super) others_alarm: Option<u64>,
    /// The time at which the guest's frames, packets and disks go on, if there are any.
    pub(super) send_at: Option<u64>,
    /// How the sending goes on, as it was last decided.
    pub(super) next: Next,
}

impl Host for TaskHost {
    #[inline]
    fn tsc(&self) -> u64 {
        cpu::tsc()
    }

    fn unix_seconds(&self) -> u64 {
        clock::unix_ns() / 1_000_000_000
    }

    fn console(&mut self, byte: u8) {
        self.guest.console_output(&[byte]);
    }

    fn console_input(&mut self) -> Option<u8> {
        self.guest.console_typed()
    }

    #[inline]
    fn kick(&mut self, vcpu: usize) {
        percpu::kick(self.guest.cpu_to_notify(vcpu));
    }

    fn shares_cpu(&self, vcpu: usize) -> bool {
        self.guest.cpu_of(vcpu) == PerCpu::current_index()
    }

    fn leave_at_once(&mut self) {
        percpu::interrupt_self();
    }

    #[inline]
    fn set_alarm(&mut self, deadline: Option<u64>) {
        let own = deadline.into_iter().chain(self.send_at).min();
        let own = own.map(|alarm| alarm.max(cpu::tsc() + timer::us_to_ticks(NEAREST_ALARM_US)));
        // A guest that sets its timer all the time postpones its own alarm, and no other's.
        match own.into_iter().chain(self.others_alarm).min() {
            Some(alarm) => timer::set_alarm(alarm),
            None => timer::clear_alarm(),
        }
    }

    fn panicked(&mut self, event: PanicEvent) {
        if event == PanicEvent::Panicked {
            self.guest.reports_panic();
        }
    }

    fn ejected(&mut self) {
        self.guest.note_ejected();
    }

    fn send_soon(&mut self) {
        self.send_at = Some(0);
    }

    fn poll_soon(&mut self) {
        self.guest.poll_devices();
    }

    fn driver_fault(&mut self, kind: u32, fault: Fault) {
        self.guest.note_driver_fault(kind, fault);
    }

    fn vector(&self, register: u8) -> [u64; 4] {
        vector::read(register)
    }

    fn set_vector(&mut self, register: u8, value: [u64; 4], write: VectorWrite) {
        vector::write(register, value, write);
    }
}
