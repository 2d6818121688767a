// SPDX-License-Identifier: MIT OR Apache-2.0
//! The simulated machine as one CPU sees it, and what it sends to others.

use std::cell::{Cell, RefCell};

use update::platform::{Clock, Cpu, Platform, Problem};
use update::trial::Stamp;

/// Microseconds of a tick.
pub const TICK_US: u64 = 500;

/// The messages between CPUs, and the clock.
#[derive(Debug, Default)]
pub struct Wires {
    pub now: Cell<u64>,
    /// By CPU: a pending interrupt, and how many more are lost.
    pub interrupts: Vec<(Cell<bool>, Cell<u32>)>,
    /// Likewise NMIs.
    pub nmis: Vec<(Cell<bool>, Cell<u32>)>,
    /// By CPU, its last step.
    pub stamps: RefCell<Vec<Option<Stamp>>>,
    /// By CPU, its problems.
    pub problems: RefCell<Vec<(usize, Problem)>>,
}

impl Wires {
    pub fn new(cpus: usize) -> Self {
        let line = || (0..cpus).map(|_| Default::default()).collect();
        let (interrupts, nmis) = (line(), line());
        Self { interrupts, nmis, stamps: RefCell::new(vec![None; cpus]), ..Self::default() }
    }

    pub fn send_nmi(&self, to: usize) {
        send(&self.nmis[to]);
    }
}

fn send((pending, lost): &(Cell<bool>, Cell<u32>)) {
    match lost.get() {
        0 => pending.set(true),
        left => lost.set(left - 1),
    }
}

/// One CPU's view. Its number is its place plus one, its identifier twice that: the CPU that takes one for another
/// fails.
pub struct View<'a> {
    pub wires: &'a Wires,
    pub at: usize,
}

pub fn cpu(at: usize) -> Cpu {
    Cpu { index: at as u32 + 1, apic_id: 2 * (at as u32 + 1) }
}

fn place(cpu: Cpu) -> usize {
    assert_eq!(cpu.apic_id, 2 * cpu.index);
    cpu.index as usize - 1
}

impl Clock for Wires {
    fn now(&self) -> u64 {
        self.now.get()
    }

    fn ticks(&self, us: u64) -> u64 {
        us / TICK_US
    }
}

impl Clock for View<'_> {
    fn now(&self) -> u64 {
        self.wires.now()
    }

    fn ticks(&self, us: u64) -> u64 {
        self.wires.ticks(us)
    }
}

impl Platform for View<'_> {
    fn interrupt(&self, cpu: Cpu) {
        send(&self.wires.interrupts[place(cpu)]);
    }

    fn send_nmi(&self, cpu: Cpu) {
        assert_ne!(place(cpu), self.at, "a CPU sends itself an NMI");
        self.wires.send_nmi(place(cpu));
    }

    fn stamp(&self, step: Stamp) {
        let before = self.wires.stamps.borrow_mut()[self.at].replace(step);
        assert!(before.map_or(-1, |before| before as i32) < step as i32, "{before:?} before {step:?}");
    }

    fn note(&self, problem: Problem) {
        self.wires.problems.borrow_mut().push((self.at, problem));
    }
}
