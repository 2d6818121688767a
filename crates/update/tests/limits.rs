// SPDX-License-Identifier: MIT OR Apache-2.0
//! One CPU waits for another that does nothing: until when, and what it does then.

use std::cell::{Cell, RefCell};

use update::blackout::{Blackout, NMI_INTERVAL_US};
use update::inbound::{self, Inbound};
use update::outbound::{Act, Back, Outbound};
use update::platform::{Clock, Cpu, Platform, Problem};
use update::takeover::{Takeover, Verdict};
use update::trial::Stamp;

/// A tick is a microsecond.
struct Machine {
    now: Cell<u64>,
    interrupted: RefCell<Vec<u32>>,
    nmis: RefCell<Vec<u32>>,
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

    fn send_nmi(&self, cpu: Cpu) {
        self.nmis.borrow_mut().push(cpu.index);
    }

    fn stamp(&self, _: Stamp) {}

    fn note(&self, _: Problem) {}
}

const BEGIN: u64 = 100;
const LIMIT: u64 = 5_000;
const DEADLINE: u64 = BEGIN + LIMIT;

struct World {
    machine: Machine,
    words: Takeover,
    blackout: Blackout,
}

impl World {
    fn new(cpus: u32) -> Self {
        let machine = Machine { now: Cell::new(BEGIN), interrupted: RefCell::default(), nmis: RefCell::default() };
        let words = Takeover::new();
        let cpu = |index| Cpu { index, apic_id: index };
        let mut blackout = Blackout::new(cpu(0), (0..cpus).map(cpu));
        blackout.begin(&words, LIMIT, &machine);
        Self { machine, words, blackout }
    }

    fn enter(&self, index: u32) -> Outbound {
        Outbound::begin(index, &self.blackout).expect("it takes part")
    }

    /// Returns the next act that is not just to go on.
    fn next(&self, way: &mut Outbound) -> Act {
        (0..10).map(|_| way.next(&self.blackout, &self.words, &self.machine)).find(|act| *act != Act::Continue).unwrap()
    }

    fn next_at(&self, now: u64, way: &mut Outbound) -> Act {
        self.machine.now.set(now);
        self.next(way)
    }
}

#[test]
fn the_leader_alone_interrupts_missing_cpus_each_millisecond() {
    let world = World::new(3);
    let (mut leader, mut other) = (world.enter(0), world.enter(1));
    for way in [&mut leader, &mut other] {
        assert_eq!((world.next(way), world.next(way)), (Act::LeaveGuests, Act::Pause));
    }
    let mut sent = |now| {
        assert_eq!([world.next_at(now, &mut leader), world.next_at(now, &mut other)], [Act::Pause; 2]);
        world.machine.interrupted.take()
    };
    assert_eq!((sent(BEGIN + 999), sent(BEGIN + 1_000)), (vec![], vec![2]));
    assert_eq!((sent(BEGIN + 1_999), sent(BEGIN + 2_000)), (vec![], vec![2]));
}

#[test]
fn a_cpu_waits_for_others_to_stop_until_the_deadline_and_no_longer() {
    let world = World::new(2);
    let mut way = world.enter(1);
    assert_eq!((world.next(&mut way), world.next(&mut way)), (Act::LeaveGuests, Act::Pause));
    assert_eq!((world.next_at(DEADLINE, &mut way), world.words.verdict()), (Act::Pause, Verdict::Open));
    assert_eq!(world.next_at(DEADLINE + 7, &mut way), Act::NoteReturn);
    assert_eq!((world.words.verdict(), world.words.blamed()), (Verdict::RolledBack, Some(1)));
    assert_eq!((world.blackout.stopped(), world.blackout.lasted()), (BEGIN, LIMIT + 7));
}

#[test]
fn a_cpu_waits_for_others_to_save_until_the_deadline_and_no_longer() {
    let world = World::new(2);
    let mut way = world.enter(0);
    assert_eq!(world.next(&mut way), Act::LeaveGuests);
    world.words.has_stopped();
    assert_eq!(world.next(&mut way), Act::Save);
    way.saved(true);
    assert_eq!(world.next(&mut way), Act::Pause);
    assert_eq!((world.next_at(DEADLINE, &mut way), world.words.verdict()), (Act::Pause, Verdict::Open));
    assert_eq!(world.next_at(DEADLINE + 2, &mut way), Act::NoteReturn);
    assert_eq!(world.words.blamed(), Some(0));
}

#[test]
fn a_cpu_waits_in_the_new_image_until_the_deadline_and_no_longer() {
    let world = World::new(2);
    let mut inbound = Inbound::begin(1);
    assert_eq!(inbound.next(&world.words, &world.machine), inbound::Act::Restore);
    inbound.restored();
    assert_eq!(inbound.next(&world.words, &world.machine), inbound::Act::Pause);
    world.machine.now.set(DEADLINE);
    assert_eq!(inbound.next(&world.words, &world.machine), inbound::Act::Pause);
    world.machine.now.set(DEADLINE + 2);
    assert_eq!(inbound.next(&world.words, &world.machine), inbound::Act::GoBack);
    assert_eq!(inbound.next(&world.words, &world.machine), inbound::Act::GoBack);
    assert_eq!(world.words.blamed(), Some(1));
}

/// Returns a CPU that has come back, and fetches the others from the new image.
fn fetching(world: &World, index: u32) -> Outbound {
    let mut way = world.enter(index);
    assert_eq!(world.next(&mut way), Act::LeaveGuests);
    world.words.roll_back(index);
    assert_eq!((world.next(&mut way), world.next(&mut way)), (Act::NoteReturn, Act::Pause));
    way
}

#[test]
fn cpus_that_are_not_back_get_nmis_and_those_that_are_get_none() {
    let world = World::new(4);
    let mut first = fetching(&world, 1);
    let mut second = world.enter(2);
    let acts = [world.next(&mut second), world.next(&mut second), world.next(&mut second)];
    assert_eq!(acts, [Act::LeaveGuests, Act::NoteReturn, Act::Done]);
    let mut sent = |now| {
        assert_eq!(world.next_at(now, &mut first), Act::Pause);
        world.machine.nmis.take()
    };
    assert_eq!((sent(BEGIN + NMI_INTERVAL_US - 1), sent(BEGIN + NMI_INTERVAL_US)), (vec![], vec![0, 3]));
    assert_eq!((sent(BEGIN + 2 * NMI_INTERVAL_US - 1), sent(BEGIN + 2 * NMI_INTERVAL_US)), (vec![], vec![0, 3]));
    // A CPU that has not come is interrupted as well: the old image passes an NMI over.
    assert_eq!(world.machine.interrupted.take().iter().filter(|index| **index == 3).count(), 2);
}

#[test]
fn a_self_test_states_when_the_first_nmi_is_sent() {
    let mut world = World::new(2);
    world.blackout.set_first_nmi_us(20_000);
    let mut way = fetching(&world, 0);
    assert_eq!((world.next_at(BEGIN + 19_999, &mut way), world.machine.nmis.take()), (Act::Pause, vec![]));
    assert_eq!((world.next_at(BEGIN + 20_000, &mut way), world.machine.nmis.take()), (Act::Pause, vec![1]));
    assert_eq!((world.next_at(BEGIN + 20_500, &mut way), world.machine.nmis.take()), (Act::Pause, vec![1]));
}

#[test]
fn what_has_been_committed_is_not_ended_by_an_nmi() {
    let world = World::new(1);
    let mut way = world.enter(0);
    assert_eq!((world.next(&mut way), world.next(&mut way)), (Act::LeaveGuests, Act::Save));
    way.saved(true);
    assert_eq!(world.next(&mut way), Act::Lend);
    assert_eq!(world.words.has_restored(), Verdict::Committed);
    way.returned(Back::Nmi);
    assert_eq!(world.next(&mut way), Act::Lend);
    assert_eq!(world.words.verdict(), Verdict::Committed);
}

#[test]
fn the_cpus_of_a_blackout_take_part_once_each_and_no_other_does() {
    let world = World::new(3);
    assert_eq!(world.blackout.members().collect::<Vec<_>>(), [0, 1, 2]);
    assert!(Outbound::begin(3, &world.blackout).is_none());
    assert!(Outbound::begin(2, &world.blackout).is_some() && Outbound::begin(2, &world.blackout).is_none());
}
