// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every interleaving of the races between the boot CPU and the others.

use loom::model;
use loom::sync::{Arc, Notify};
use loom::thread;

use crate::cell::CpuCell;
use crate::conductor::bring_up;
use crate::crew::{Crew, Group, Shared, permission};
use crate::follower::{Follower, Next};
use crate::hardware::{Clock, Kick, Station, Wake};
use crate::park::{Entry, ParkOrder, ParkSlot};
use crate::state::{Phase, State};
use crate::sync::{AtomicU32, Ordering};
use crate::tsc::Exchange;

#[test]
fn a_cpu_given_up_at_any_moment_is_dead_or_online_and_never_both() {
    model(|| {
        let cell = Arc::new(CpuCell::new());
        assert!(cell.kick(1));
        let cpu = {
            let cell = cell.clone();
            thread::spawn(move || {
                let path = [State::Kicked, State::Alive, State::Initialised, State::TscSynchronised, State::Online];
                path.windows(2).enumerate().all(|(step, pair)| cell.advance(pair[0], pair[1], step as u64 + 2).is_ok())
            })
        };
        let seen = cell.state();
        let condemned = cell.condemn(seen, 99);
        let is_online = cpu.join().unwrap();
        assert_eq!(is_online, condemned.is_err(), "one of them wins");
        match condemned {
            Ok(phase) => assert_eq!(cell.state(), State::Dead(phase)),
            Err(_) => assert_eq!((cell.state(), cell.stamps().online), (State::Online, 5)),
        }
    });
}

#[test]
fn a_cpu_that_sees_a_state_sees_its_stamp() {
    model(|| {
        let cell = Arc::new(CpuCell::new());
        let cpu = {
            let cell = cell.clone();
            thread::spawn(move || {
                cell.kick(7);
                cell.advance(State::Kicked, State::Alive, 8).unwrap();
            })
        };
        match cell.state() {
            State::Kicked => assert_eq!(cell.stamps().kicked, 7),
            State::Alive => assert_eq!((cell.stamps().kicked, cell.stamps().alive), (7, 8)),
            _ => {}
        }
        cpu.join().unwrap();
    });
}

/// One broadcast wakes all, so a CPU notes its own kick while the boot CPU may be giving it up.
#[test]
fn a_cpu_woken_by_broadcast_and_given_up_meanwhile_knows() {
    model(|| {
        let cell = Arc::new(CpuCell::new());
        let cpu = {
            let cell = cell.clone();
            thread::spawn(move || {
                cell.kick(1);
                cell.advance(State::Kicked, State::Alive, 2).is_ok()
            })
        };
        let seen = cell.state();
        let condemned = cell.condemn(seen, 9);
        let is_alive = cpu.join().unwrap();
        match cell.state() {
            State::Alive => assert!(is_alive && condemned.is_err()),
            State::Dead(Phase::FirstSign) => assert!(!is_alive && condemned.is_ok()),
            // Given up as alive: the first step was made before.
            State::Dead(Phase::Initialisation) => assert!(is_alive && condemned == Ok(Phase::Initialisation)),
            state => panic!("{state}"),
        }
    });
}

/// Serial: each step waits for the permission that follows from the step before.
#[test]
fn no_step_is_made_before_it_is_permitted() {
    model(|| {
        let cell = Arc::new(CpuCell::new());
        let prepared = Arc::new(AtomicU32::new(0));
        cell.kick(1);
        let cpu = {
            let (cell, prepared) = (cell.clone(), prepared.clone());
            thread::spawn(move || {
                cell.advance(State::Kicked, State::Alive, 2).unwrap();
                while cell.permitted() < permission::INITIALISE {
                    thread::yield_now();
                }
                assert_eq!(prepared.load(Ordering::Relaxed), 1, "what the permission stands for is visible");
                cell.advance(State::Alive, State::Initialised, 3).unwrap();
            })
        };
        while cell.state() != State::Alive {
            thread::yield_now();
        }
        prepared.store(1, Ordering::Relaxed);
        cell.permit(permission::INITIALISE);
        cpu.join().unwrap();
        assert_eq!(cell.state(), State::Initialised);
    });
}

#[test]
fn arrivals_of_neighbours_are_all_counted() {
    model(|| {
        let groups = Arc::new([Group::new()]);
        let shared = Arc::new(Shared::new());
        let cells = Arc::new([CpuCell::new(), CpuCell::new(), CpuCell::new()]);
        let neighbour = {
            let (groups, shared, cells) = (groups.clone(), shared.clone(), cells.clone());
            thread::spawn(move || crate::crew::tests::crew(&cells[..], &groups[..], &shared).count_online(1))
        };
        let crew = crate::crew::tests::crew(&cells[..], &groups[..], &shared);
        crew.count_online(2);
        neighbour.join().unwrap();
        assert_eq!(crew.online(), 2);
    });
}

/// A CPU turns from its parent to the boot CPU while both may be answering.
#[test]
fn a_question_is_answered_once_by_the_last_asked_or_one_that_had_begun() {
    model(|| {
        let exchange = Arc::new(Exchange::new());
        exchange.ask(5);
        let answer_as = |me: u32, time: u64| {
            let exchange = exchange.clone();
            thread::spawn(move || exchange.answer(me, || time))
        };
        let (parent, boot_cpu) = (answer_as(5, 50), answer_as(0, 10));
        let is_redirected = exchange.redirect(5, 0);
        let (by_parent, by_boot_cpu) = (parent.join().unwrap(), boot_cpu.join().unwrap());
        assert!(!by_parent || !is_redirected, "a partner that has begun to answer is not turned away from");
        assert!(!by_boot_cpu || is_redirected, "no CPU answers unasked");
        let expected = if by_parent { Some(50) } else { by_boot_cpu.then_some(10) };
        assert_eq!(exchange.take(), expected);
    });
}

/// A boot CPU without a clock to give any CPU up by: loom bounds the waiting.
struct Boot {
    slots: Arc<[ParkSlot; 2]>,
    beds: Arc<[Notify; 2]>,
}

/// The other CPU.
struct Other {
    beds: Arc<[Notify; 2]>,
}

impl Wake for Boot {
    fn wake(&mut self, index: u32) {
        self.beds[index as usize].notify();
    }
}

impl Wake for Other {
    fn wake(&mut self, index: u32) {
        self.beds[index as usize].notify();
    }
}

const ENTRY: Entry = Entry { target: 0x1000, root: 0x1000, argument: 1 };

impl Clock for Boot {
    fn now(&mut self) -> u64 {
        1
    }
}

impl Clock for Other {
    fn now(&mut self) -> u64 {
        2
    }
}

impl Kick for Boot {
    fn pause(&mut self) {
        thread::yield_now();
    }
    /// Without end: a wake-up that is lost is a deadlock, which loom finds.
    fn sleep(&mut self, _: u64) {
        self.beds[0].wait();
    }
    fn send_init(&mut self, _: u32) {
        panic!("a parked CPU is never reset")
    }
    fn send_startup(&mut self, _: u32, _: u8) {
        panic!("nor started")
    }
    fn broadcast_init(&mut self) {
        panic!("a parked CPU is never reset")
    }
    fn broadcast_startup(&mut self, _: u8) {
        panic!("nor started")
    }
    fn release(&mut self, index: u32) -> bool {
        self.slots[index as usize].release(index, ENTRY).is_ok()
    }
}

impl Station for Other {
    fn tsc_adjust(&mut self) -> Option<u64> {
        Some(0)
    }
    fn set_tsc_adjust(&mut self, _: u64) {}
    fn release(&mut self, _: u32) -> bool {
        panic!("it has no children")
    }
}

/// The whole of it: mailbox, kick, permission, arrival, wait. At most two switches between CPUs that neither
/// asked for.
#[test]
fn a_parked_cpu_comes_online_and_the_boot_cpu_sees_it() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(|| {
        let slots = Arc::new([ParkSlot::new(), ParkSlot::new()]);
        let cells = Arc::new([CpuCell::new(), CpuCell::new()]);
        let (groups, shared) = (Arc::new([Group::new()]), Arc::new(Shared::new()));
        let beds = Arc::new([Notify::new(), Notify::new()]);
        slots[1].park(1);
        assert!(cells[1].mark_parked());
        let cpu = {
            let (slots, cells, groups, shared) = (slots.clone(), cells.clone(), groups.clone(), shared.clone());
            let mut other = Other { beds: beds.clone() };
            thread::spawn(move || {
                while slots[1].poll() != ParkOrder::Go(ENTRY) {
                    thread::yield_now();
                }
                let crew = crate::crew::tests::parked_pair(&cells[..], &groups[..], &shared);
                goes_online(&crew, &mut other);
            })
        };
        let crew = crate::crew::tests::parked_pair(&cells[..], &groups[..], &shared);
        let summary = bring_up(&crew, &mut Boot { slots, beds });
        assert_eq!((summary.online, summary.dead.len(), crew.state(1)), (1, 0, State::Online));
        cpu.join().unwrap();
    });
}

/// CPU 1 obeys its orders, asleep in between. A wake-up that is lost is a deadlock, which loom finds.
fn goes_online(crew: &Crew<'_>, other: &mut Other) {
    let mut follower = Follower::arrive(crew, 1, other).unwrap();
    loop {
        match follower.poll(other) {
            Next::Again => thread::yield_now(),
            Next::Sleep { .. } => other.beds[1].wait(),
            Next::Initialise => assert_eq!(follower.initialised(other), Next::Again),
            Next::Online => return,
            Next::Halt => panic!("it was not given up"),
        }
    }
}

/// Two other CPUs change the condition of a CPU that is just about to sleep: it sees the change, or it is woken.
/// Whether the first permission is still waited for when the last comes is up to them.
#[test]
fn no_wake_up_is_lost_between_the_last_check_and_the_sleep() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(|| {
        let tables = Arc::new(([CpuCell::new(), CpuCell::new()], [Group::new()], Shared::new()));
        let beds = Arc::new([Notify::new(), Notify::new()]);
        assert!(tables.0[1].kick(1));
        let beside = |does: fn(&Crew<'_>, &mut Other)| {
            let (tables, beds) = (tables.clone(), beds.clone());
            thread::spawn(move || {
                let (cells, groups, shared) = &*tables;
                does(&crate::crew::tests::serial_pair(cells, groups, shared), &mut Other { beds });
            })
        };
        let sleeper = beside(goes_online);
        let other = beside(|crew, other| {
            crew.cell(1).unwrap().permit(permission::INITIALISE);
            crew.rouse(1, other);
        });
        let (cells, groups, shared) = &*tables;
        let crew = crate::crew::tests::serial_pair(cells, groups, shared);
        crew.permit_all(permission::GO_ONLINE);
        crew.rouse(1, &mut Other { beds });
        other.join().unwrap();
        sleeper.join().unwrap();
        assert_eq!(crew.state(1), State::Online);
    });
}

/// Serially each of four steps of either side waits for one of the other's, asleep.
#[test]
fn no_cpu_oversleeps_when_each_waits_for_the_others_step() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(1);
    builder.check(|| {
        let cells = Arc::new([CpuCell::new(), CpuCell::new()]);
        let (groups, shared) = (Arc::new([Group::new()]), Arc::new(Shared::new()));
        let beds = Arc::new([Notify::new(), Notify::new()]);
        let cpu = {
            let (cells, groups, shared) = (cells.clone(), groups.clone(), shared.clone());
            let mut other = Other { beds: beds.clone() };
            thread::spawn(move || {
                let crew = crate::crew::tests::serial_pair(&cells[..], &groups[..], &shared);
                while crew.state(1) != State::Kicked {
                    other.beds[1].wait();
                }
                goes_online(&crew, &mut other);
            })
        };
        let crew = crate::crew::tests::serial_pair(&cells[..], &groups[..], &shared);
        let summary = bring_up(&crew, &mut Starter(beds));
        assert_eq!((summary.online, summary.dead.len(), crew.state(1)), (1, 0, State::Online));
        cpu.join().unwrap();
    });
}

/// A boot CPU that starts others by interrupts.
struct Starter(Arc<[Notify; 2]>);

impl Clock for Starter {
    fn now(&mut self) -> u64 {
        1
    }
}

impl Wake for Starter {
    fn wake(&mut self, index: u32) {
        self.0[index as usize].notify();
    }
}

impl Kick for Starter {
    fn pause(&mut self) {
        thread::yield_now();
    }
    fn sleep(&mut self, _: u64) {
        self.0[0].wait();
    }
    fn send_init(&mut self, _: u32) {}
    fn send_startup(&mut self, index: u32, _: u8) {
        self.wake(index);
    }
    fn broadcast_init(&mut self) {
        panic!("one at a time")
    }
    fn broadcast_startup(&mut self, _: u8) {
        panic!("one at a time")
    }
    fn release(&mut self, _: u32) -> bool {
        panic!("no CPU is parked")
    }
}
