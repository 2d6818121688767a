// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two CPUs, one fault of the one that is not the leader, every schedule.

use std::collections::{HashSet, VecDeque};

use update::restart::{Act, Departure};

use crate::world::{Other, World};

/// A tick is a second, and time passes no further while schedules are tried: CPUs are lost by then.
const TICK_MS: u64 = 1_000;
const LIMIT: u64 = 5;
const HORIZON: u64 = LIMIT + 2;

#[derive(Clone, Copy)]
enum Choice {
    Leader,
    Other,
    Time,
}

const CHOICES: [Choice; 3] = [Choice::Leader, Choice::Other, Choice::Time];

struct Machine {
    world: World,
    departure: Departure,
    has_left: bool,
}

impl Machine {
    fn replay(other: &Other, schedule: &[Choice]) -> Self {
        let world = World::with_ticks_of(TICK_MS, vec![other.clone()]);
        let departure = world.departure();
        let mut machine = Self { world, departure, has_left: false };
        schedule.iter().for_each(|choice| _ = machine.apply(*choice));
        machine
    }

    /// Returns whether that was possible.
    fn apply(&mut self, choice: Choice) -> bool {
        match choice {
            Choice::Leader if self.has_left => return false,
            Choice::Leader => self.has_left = self.world.lead(&mut self.departure) == Act::Leave,
            Choice::Other => self.world.step(0),
            Choice::Time if self.world.now.get() >= HORIZON => return false,
            Choice::Time => self.world.now.set(self.world.now.get() + 1),
        }
        true
    }

    fn check(&mut self) {
        match self.has_left {
            true => self.world.check_end(),
            false => _ = self.world.finish_from(&mut self.departure),
        }
    }
}

/// Tries every schedule, short ones first; returns how many states there are.
fn explore(other: &Other) -> usize {
    let mut seen = HashSet::new();
    let mut open = VecDeque::from([Vec::new()]);
    while let Some(schedule) = open.pop_front() {
        for choice in CHOICES {
            let mut machine = Machine::replay(other, &schedule);
            if machine.apply(choice) && seen.insert(machine.world.fingerprint(&machine.departure)) {
                open.push_back([&schedule[..], &[choice]].concat());
                machine.check();
            }
        }
    }
    seen.len()
}

#[test]
fn two_cpus_leave_whatever_the_schedule() {
    assert!(explore(&Other::default()) > 100);
}

#[test]
fn two_cpus_leave_whatever_interrupts_are_lost() {
    (1..4).for_each(|lost| assert!(explore(&Other { lost, ..Other::default() }) > 100));
}

#[test]
fn two_cpus_leave_however_late_the_other_one_parks() {
    let times = (1..=HORIZON).chain([u64::MAX]);
    times.for_each(|busy_until| assert!(explore(&Other { busy_until, ..Other::default() }) > 100));
}
