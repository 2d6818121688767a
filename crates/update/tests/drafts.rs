// SPDX-License-Identifier: MIT OR Apache-2.0
//! The leader waits until each CPU has saved its guests once.

use std::cell::{Cell, RefCell};

use update::drafts::Drafts;
use update::platform::{Clock, Cpu, Platform, Problem};
use update::trial::Stamp;

/// A tick is a microsecond.
#[derive(Default)]
struct Machine {
    now: Cell<u64>,
    interrupted: RefCell<Vec<u32>>,
}

impl Clock for Machine {
    fn now(&self) -> u64 {
        self.now.get()
    }

    fn ticks(&self, us: u64) -> u64 {
        us
    }
}

impl Platform for Machine {
    fn interrupt(&self, cpu: Cpu) {
        self.interrupted.borrow_mut().push(cpu.index);
    }

    fn send_nmi(&self, _: Cpu) {}

    fn stamp(&self, _: Stamp) {}

    fn note(&self, _: Problem) {}
}

fn begun(machine: &Machine) -> Drafts<&'static str> {
    let mut drafts = Drafts::new([0, 3, 5].into_iter().map(|index| Cpu { index, apic_id: 9 }));
    drafts.begin(machine);
    assert_eq!(machine.interrupted.take(), [0, 3, 5]);
    drafts
}

#[test]
fn cpus_that_have_not_saved_are_interrupted_each_millisecond() {
    let machine = Machine::default();
    let mut drafts = begun(&machine);
    drafts.note(3, Ok(()));
    machine.now.set(999);
    assert_eq!((drafts.poll(&machine), machine.interrupted.take()), (None, vec![]));
    machine.now.set(1_000);
    assert_eq!((drafts.poll(&machine), machine.interrupted.take()), (None, vec![0, 5]));
    machine.now.set(1_999);
    assert_eq!((drafts.poll(&machine), machine.interrupted.take()), (None, vec![]));
    drafts.note(0, Ok(()));
    drafts.note(5, Ok(()));
    assert_eq!(drafts.poll(&machine), Some(Ok(())));
}

#[test]
fn the_first_problem_is_reported_once_all_have_come() {
    let machine = Machine::default();
    let mut drafts = begun(&machine);
    drafts.note(5, Err("five"));
    drafts.note(3, Err("three"));
    drafts.note(3, Ok(()));
    drafts.note(4, Err("no draft"));
    assert_eq!(drafts.poll(&machine), None);
    drafts.note(0, Ok(()));
    assert_eq!(drafts.poll(&machine), Some(Err(&"three")));
}
