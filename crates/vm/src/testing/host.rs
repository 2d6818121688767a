// SPDX-License-Identifier: MIT OR Apache-2.0
//! A hypervisor for tests.

use std::collections::VecDeque;
use std::vec::Vec;

use ::virtio::Fault;

use crate::devices::pvpanic::PanicEvent;
use crate::machine::Host;
use crate::machine::emulate::VectorWrite;

/// A hypervisor that is plain data: a test sets its clocks, and it records the requests to it.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)]
pub struct FakeHost {
    pub tsc: u64,
    pub unix_seconds: u64,
    pub console: Vec<u8>,
    pub alarm: Option<u64>,
    pub panics: Vec<PanicEvent>,
    /// Devices that the guest has ejected.
    pub ejected: u32,
    /// How often a device was to be polled.
    pub polls: u32,
    /// Kinds of virtio devices with drivers at fault, and the faults.
    pub faults: Vec<(u32, Fault)>,
    /// Bytes that the operator has typed and the guest has not read.
    pub typed: VecDeque<u8>,
    /// Number of entries that were to be left at once.
    pub left_at_once: u32,
    /// vCPUs that were to check their interrupts.
    pub kicked: Vec<usize>,
    /// vCPUs that are on the same CPU.
    pub neighbours: Vec<usize>,
    pub vectors: [[u64; 4]; 16],
}

impl Host for FakeHost {
    fn tsc(&self) -> u64 {
        self.tsc
    }
    fn unix_seconds(&self) -> u64 {
        self.unix_seconds
    }
    fn console(&mut self, byte: u8) {
        self.console.push(byte);
    }
    fn console_input(&mut self) -> Option<u8> {
        self.typed.pop_front()
    }
    fn kick(&mut self, vcpu: usize) {
        self.kicked.push(vcpu);
    }
    fn shares_cpu(&self, vcpu: usize) -> bool {
        self.neighbours.contains(&vcpu)
    }
    fn leave_at_once(&mut self) {
        self.left_at_once += 1;
    }
    fn set_alarm(&mut self, deadline: Option<u64>) {
        self.alarm = deadline;
    }
    fn panicked(&mut self, event: PanicEvent) {
        self.panics.push(event);
    }
    fn ejected(&mut self) {
        self.ejected += 1;
    }

    fn send_soon(&mut self) {}
    fn poll_soon(&mut self) {
        self.polls += 1;
    }
    fn driver_fault(&mut self, kind: u32, fault: Fault) {
        self.faults.push((kind, fault));
    }
    fn vector(&self, register: u8) -> [u64; 4] {
        self.vectors[usize::from(register)]
    }
    fn set_vector(&mut self, register: u8, value: [u64; 4], write: VectorWrite) {
        let [low, high, ..] = value;
        let [.., third, fourth] = self.vectors[usize::from(register)];
        self.vectors[usize::from(register)] = match write {
            VectorWrite::Keep => [low, high, third, fourth],
            VectorWrite::Clear => [low, high, 0, 0],
            VectorWrite::Whole => value,
        };
    }
}
