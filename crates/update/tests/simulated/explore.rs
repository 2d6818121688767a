// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every schedule: from each state that any schedule leads to, each CPU may act next, or time may pass. States are
//! distinguished by all that is in them, so that waits make no endless path.

use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::fmt::{self, Write as _};
use std::hash::Hasher as _;

use crate::fault::Fault;
use crate::world::{WATCHDOG, World};

/// Time passes no further while schedules are tried: the watchdog has gone off by then. A fair schedule goes on.
const HORIZON: u64 = WATCHDOG + 1;
/// Rounds in which a fair schedule must end each state.
const ROUNDS: u32 = 60;

#[derive(Clone, Copy)]
enum Choice {
    Cpu(usize),
    Time,
    StrayNmi,
}

/// Tries every schedule of `cpus` CPUs with this fault. Returns how many states there are.
pub fn explore(cpus: usize, fault: Fault) -> usize {
    let mut seen = HashSet::new();
    let mut open: Vec<Vec<Choice>> = vec![Vec::new()];
    let choices = (0..cpus).map(Choice::Cpu).chain([Choice::Time, Choice::StrayNmi]);
    let choices: Vec<Choice> = choices.collect();
    while let Some(schedule) = open.pop() {
        for choice in &choices {
            let mut world = replay(cpus, fault, &schedule);
            if !apply(&mut world, *choice) || !seen.insert(fingerprint(&world)) {
                continue;
            }
            open.push([&schedule[..], &[*choice]].concat());
            world.finish(ROUNDS);
        }
    }
    seen.len()
}

fn replay(cpus: usize, fault: Fault, schedule: &[Choice]) -> World {
    let mut world = World::new(cpus, &[fault]);
    schedule.iter().for_each(|choice| _ = apply(&mut world, *choice));
    world
}

fn apply(world: &mut World, choice: Choice) -> bool {
    match choice {
        Choice::Cpu(at) => world.step(at),
        Choice::Time if world.wires.now.get() < HORIZON => world.pass_time(),
        Choice::Time => return false,
        Choice::StrayNmi => return world.send_stray_nmi(),
    }
    true
}

fn fingerprint(world: &World) -> u64 {
    let mut hasher = Fingerprint(DefaultHasher::new());
    write!(hasher, "{world:?}").expect("a hash takes any text");
    hasher.0.finish()
}

struct Fingerprint(DefaultHasher);

impl fmt::Write for Fingerprint {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}
