// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two machines do the same; the guest of one uses the paravirtual end of interrupt, the other's writes the register
//! each time. Neither may see an interrupt that the other does not see, nor at another time.
use proptest::prelude::*;

use super::interrupts::{edge, nmi};
use super::*;
use crate::devices::InterruptMessage;

const PV_EOI: u32 = 0x4b56_4d04;
const FLAG: Gpa = Gpa(0x5000);

#[derive(Clone, Copy, Debug)]
enum Step {
    Edge(u8),
    Level(u8),
    SelfIpi(u8),
    Nmi,
    End,
    TaskPriority(u8),
    /// The guest is entered with interrupts enabled or disabled.
    Enter(bool),
    /// The delivery of the event injected last is interrupted by an exit; the guest is entered again.
    EnterAndAgain,
    ReadInService,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0x20..0x70u8).prop_map(Step::Edge),
        1 => (0x20..0x70u8).prop_map(Step::Level),
        1 => (0x20..0x70u8).prop_map(Step::SelfIpi),
        1 => Just(Step::Nmi),
        5 => Just(Step::End),
        1 => (0..8u8).prop_map(Step::TaskPriority),
        6 => any::<bool>().prop_map(Step::Enter),
        1 => Just(Step::EnterAndAgain),
        1 => Just(Step::ReadInService),
    ]
}

impl Lab {
    fn step(&mut self, step: Step) -> Option<Event> {
        match step {
            Step::Edge(vector) => self.send(&edge(vector)),
            Step::Level(vector) => self.send(&InterruptMessage { is_level: true, ..edge(vector) }),
            Step::SelfIpi(vector) => self.wrmsr(SELF_IPI, vector.into()).unwrap(),
            Step::Nmi => self.send(&nmi()),
            Step::End => self.end(),
            Step::TaskPriority(class) => self.vcpu.task_priority = class,
            Step::ReadInService => drop(self.rdmsr(0x811)),
            Step::Enter(enabled) => {
                self.set_interrupts(enabled);
                return self.enter();
            }
            Step::EnterAndAgain => {
                self.set_interrupts(true);
                let first = self.enter();
                self.vcpu.injected = first;
                self.handle(Exit::HostInterrupt);
                return self.enter();
            }
        }
        None
    }

    fn end(&mut self) {
        if self.machine.memory().bytes(FLAG, 1)[0] & 1 != 0 {
            self.machine.memory().write(FLAG, &[0]).unwrap();
        } else {
            self.wrmsr(EOI, 0).unwrap();
        }
    }
}

proptest! {
    #[test]
    fn the_paravirtual_end_changes_nothing_but_the_number_of_exits(steps in prop::collection::vec(step(), 1..80)) {
        let (mut plain, mut paravirtual) = (Lab::new(), Lab::new());
        paravirtual.wrmsr(PV_EOI, FLAG.0 | 1).unwrap();
        for step in steps {
            let (left, right) = (plain.step(step), paravirtual.step(step));
            prop_assert_eq!(left, right, "{:?}", step);
            if matches!(step, Step::Enter(_) | Step::EnterAndAgain) {
                prop_assert_eq!(plain.cpu.lapic.state(), paravirtual.cpu.lapic.state());
                prop_assert_eq!(plain.vcpu.window_requested, paravirtual.vcpu.window_requested);
            }
        }
        let writes = |lab: &Lab| lab.cpu.exits.get(ExitKind::MsrWrite);
        prop_assert!(writes(&paravirtual) <= writes(&plain) + 1, "one more, to enable it");
    }

    #[test]
    fn every_interrupt_is_taken_exactly_once(
        vectors in prop::collection::btree_set(0x20..=0xffu8, 1..40),
        is_paravirtual in any::<bool>(),
    ) {
        let mut lab = Lab::new();
        if is_paravirtual {
            lab.wrmsr(PV_EOI, FLAG.0 | 1).unwrap();
        }
        vectors.iter().for_each(|&vector| lab.send(&edge(vector)));
        for &vector in vectors.iter().rev() {
            prop_assert_eq!(lab.take_interrupt(), Some(vector));
            lab.end();
        }
        prop_assert_eq!(lab.take_interrupt(), None);
    }
}
