// SPDX-License-Identifier: MIT OR Apache-2.0
//! The leader leaves the old image while simulated CPUs run guests that write: on any schedule, whatever is lost.

use std::cell::{Cell, RefCell};

use proptest::prelude::*;
use update::platform::{Clock, Cpu, Platform, Problem};
use update::restart::{Act, Departure};
use update::trial::Stamp;

/// Ticks in which CPUs must park, and after which they are interrupted again; a tick is a millisecond.
const LIMIT: u64 = 5_000;
const REMINDER: u64 = 1;

#[derive(Clone, Debug, Default)]
struct Other {
    is_interrupted: bool,
    /// So many interrupts are lost.
    lost: u32,
    /// It leaves its guest only then.
    busy_until: u64,
    is_parked: bool,
    is_reset: bool,
}

#[derive(Default)]
struct World {
    now: Cell<u64>,
    others: RefCell<Vec<Other>>,
    interrupts: Cell<u32>,
    is_parking: bool,
    /// Bytes that guests have written, and of these the ones that were sent; lines of the log likewise.
    written: u64,
    sent: u64,
    logged: u64,
    printed: u64,
    acts: Vec<Act>,
    /// Output is sent as an earlier image did: when the others are ordered to park, and not once they have.
    sends_early: bool,
}

fn cpu(at: usize) -> Cpu {
    Cpu { index: at as u32 + 1, apic_id: at as u32 + 101 }
}

impl Clock for World {
    fn now(&self) -> u64 {
        self.now.get()
    }

    fn ticks(&self, us: u64) -> u64 {
        us / 1_000
    }
}

impl Platform for World {
    fn interrupt(&self, cpu: Cpu) {
        assert_eq!(cpu.apic_id, cpu.index + 100);
        self.interrupts.set(self.interrupts.get() + 1);
        let other = &mut self.others.borrow_mut()[cpu.index as usize - 1];
        match other.lost {
            0 => other.is_interrupted = true,
            lost => other.lost = lost - 1,
        }
    }

    fn send_nmi(&self, _: Cpu) {
        panic!("no CPU is fetched");
    }

    fn stamp(&self, _: Stamp) {}

    fn note(&self, problem: Problem) {
        panic!("{problem:?}");
    }
}

impl World {
    fn new(others: Vec<Other>) -> Self {
        Self { others: others.into(), ..Self::default() }
    }

    /// The CPU parks if it may, or its guest writes.
    fn step(&mut self, at: usize) {
        let now = self.now.get();
        let other = &mut self.others.get_mut()[at];
        if other.is_parked || other.is_reset {
            return;
        }
        if self.is_parking && other.is_interrupted && now >= other.busy_until {
            other.is_parked = true;
            return;
        }
        self.written += 1;
        self.logged += 1;
    }

    fn lead(&mut self, departure: &mut Departure) -> Act {
        let others = self.others.borrow().len();
        let is_parked = |cpu: Cpu| self.others.borrow()[cpu.index as usize - 1].is_parked;
        let act = departure.next(self, (0..others).map(cpu), is_parked);
        match act {
            Act::PrintLog | Act::EndLog => self.printed = self.logged,
            Act::Park => {
                self.is_parking = true;
                if self.sends_early {
                    self.sent = self.written;
                }
            }
            Act::Lose(cpu) => {
                let other = &mut self.others.get_mut()[cpu.index as usize - 1];
                assert!(!other.is_parked && !other.is_reset && self.now.get() >= LIMIT);
                other.is_reset = true;
            }
            Act::SendOutput => {
                if !self.sends_early {
                    self.sent = self.written;
                }
                self.logged += 1;
            }
            Act::CheckImage => self.logged += 1,
            _ => {}
        }
        if act != Act::Pause {
            self.acts.push(act);
        }
        act
    }

    fn check_end(&mut self) {
        assert_eq!(self.sent, self.written, "output is lost");
        assert_eq!(self.printed, self.logged, "the log's end is lost");
        assert!(self.others.get_mut().iter().all(|other| other.is_parked != other.is_reset));
        let order: Vec<_> = self.acts.iter().filter(|act| !matches!(act, Act::Lose(_))).copied().collect();
        let all = [
            Act::PrintLog,
            Act::StopGuests,
            Act::Park,
            Act::ResetAbsent,
            Act::SendOutput,
            Act::CheckImage,
            Act::EndLog,
            Act::WriteRecord,
            Act::Leave,
        ];
        assert_eq!(order, all);
    }

    /// Each CPU in turn, then a tick.
    fn finish(&mut self) -> u64 {
        let mut departure = Departure::begin();
        for _ in 0..LIMIT + 1_000 {
            for _ in 0..6 {
                (0..self.others.get_mut().len()).for_each(|at| self.step(at));
                if self.lead(&mut departure) == Act::Leave {
                    self.check_end();
                    return self.now.get();
                }
            }
            self.now.set(self.now.get() + 1);
        }
        panic!("it does not end: {:?}", self.acts);
    }
}

#[test]
fn one_cpu_alone_leaves_at_once() {
    assert!(World::new(Vec::new()).finish() < 3);
}

#[test]
#[should_panic(expected = "output is lost")]
fn output_that_is_sent_before_the_others_park_is_lost() {
    let others = vec![Other { busy_until: 100, ..Other::default() }; 3];
    World { sends_early: true, ..World::new(others) }.finish();
}

#[test]
fn what_guests_write_until_they_park_is_sent() {
    let mut world = World::new(vec![Other { busy_until: 100, ..Other::default() }; 3]);
    assert!((100..110).contains(&world.finish()));
    assert!(world.written > 300);
}

#[test]
fn a_lost_interrupt_is_repeated() {
    let mut world = World::new(vec![Other { lost: 3, ..Other::default() }]);
    let took = world.finish();
    assert!((3 * REMINDER..3 * REMINDER + 4).contains(&took), "{took}");
    assert_eq!(world.interrupts.get(), 4);
}

#[test]
fn a_cpu_that_is_late_is_interrupted_once_a_millisecond() {
    let mut world = World::new(vec![Other { busy_until: 50, ..Other::default() }]);
    world.finish();
    assert!((45..=52).contains(&world.interrupts.get()), "{}", world.interrupts.get());
}

#[test]
fn cpus_that_never_park_are_reset_at_the_limit_all_alike() {
    let stuck = Other { busy_until: u64::MAX, ..Other::default() };
    let mut world = World::new(vec![stuck.clone(), Other::default(), stuck]);
    assert!((LIMIT..LIMIT + 5).contains(&world.finish()));
    let lost: Vec<_> = world.acts.iter().filter(|act| matches!(act, Act::Lose(_))).copied().collect();
    assert_eq!(lost, [Act::Lose(cpu(0)), Act::Lose(cpu(2))]);
}

fn other() -> impl Strategy<Value = Other> {
    let busy = prop_oneof![4 => Just(0), 3 => 0..LIMIT, 1 => Just(u64::MAX)];
    (0..4_u32, busy).prop_map(|(lost, busy_until)| Other { lost, busy_until, ..Other::default() })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Each choice: a CPU acts, the leader does, or a tick passes; when none is left, all do in turn.
    #[test]
    fn nothing_is_lost_on_any_schedule(
        others in prop::collection::vec(other(), 0..64),
        choices in prop::collection::vec(0..66_usize, 0..2_000),
    ) {
        let mut world = World::new(others);
        let mut departure = Departure::begin();
        let cpus = world.others.get_mut().len();
        let mut has_left = false;
        for choice in choices {
            match choice {
                65 => world.now.set(world.now.get() + 1),
                at if at < cpus => world.step(at),
                _ => has_left |= !has_left && world.lead(&mut departure) == Act::Leave,
            }
        }
        for _ in 0..LIMIT + 100 {
            (0..cpus).for_each(|at| world.step(at));
            for _ in 0..8 {
                has_left |= !has_left && world.lead(&mut departure) == Act::Leave;
            }
            world.now.set(world.now.get() + 1);
        }
        prop_assert!(has_left);
        world.check_end();
    }
}
