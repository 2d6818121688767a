// SPDX-License-Identifier: MIT OR Apache-2.0
//! Single schedules, for what they must lead to.

use update::blackout::Blackout;
use update::outbound::{Act, Outbound};
use update::platform::Problem;
use update::takeover::{Takeover, Verdict};

use crate::fault::{Fault, Kind, Step};
use crate::machine::{View, Wires, cpu};
use crate::world::{LIMIT, WATCHDOG, World};

fn finished(cpus: usize, fault: Fault) -> World {
    let mut world = World::new(cpus, &[fault]);
    world.finish(3_000);
    world
}

#[test]
fn without_a_fault_all_cpus_commit() {
    for cpus in [1, 2, 3, 64] {
        let world = finished(cpus, Fault::None);
        assert_eq!((world.words.verdict(), world.words.blamed()), (Verdict::Committed, None), "{cpus} CPUs");
        assert_eq!(*world.wires.problems.borrow(), []);
    }
}

#[test]
fn a_lost_interrupt_costs_a_reminder_and_not_the_update() {
    assert_eq!(finished(2, Fault::InterruptsLost(1, 1)).words.verdict(), Verdict::Committed);
    // With the third interrupt the deadline has come.
    assert_eq!(finished(2, Fault::InterruptsLost(1, 3)).words.verdict(), Verdict::RolledBack);
}

#[test]
fn an_interrupt_of_the_old_image_costs_nothing() {
    let world = finished(2, Fault::NewImage(1, Step::Restore, Kind::Interrupted));
    assert_eq!(world.words.verdict(), Verdict::Committed);
}

#[test]
fn the_cpu_on_which_the_new_image_fails_is_named_with_the_problem() {
    let world = finished(3, Fault::NewImage(2, Step::Restore, Kind::Fails));
    assert_eq!(world.words.blamed(), Some(cpu(2).index));
    assert_eq!(world.wires.problems.borrow()[0], (2, Problem::Failed));
}

#[test]
fn a_cpu_that_cannot_save_is_named() {
    let world = finished(2, Fault::SaveFails(1));
    assert_eq!((world.words.verdict(), world.words.blamed()), (Verdict::RolledBack, Some(cpu(1).index)));
}

#[test]
fn a_hanging_cpu_costs_no_more_than_the_limit_and_an_nmi() {
    let world = finished(2, Fault::NewImage(1, Step::Meet, Kind::Hangs));
    // Its time was ended after the roll-back: that is no problem of its own.
    assert_eq!(*world.wires.problems.borrow(), []);
    assert!(world.wires.now.get() <= LIMIT + 6, "{} ticks", world.wires.now.get());
}

#[test]
fn where_all_cpus_hang_the_watchdog_ends_the_new_images_time() {
    let world = finished(2, Fault::AllHang(Step::Arrive));
    assert_eq!(world.wires.problems.borrow()[..], [(0, Problem::TimedOut)]);
    assert_eq!(world.words.blamed(), Some(cpu(0).index));
}

#[test]
fn a_cpu_that_never_comes_is_lost_in_bounded_time() {
    let mut world = World::new(2, &[Fault::Stuck(1)]);
    for _ in 0..3_000 {
        (0..2).for_each(|at| world.step(at));
        world.pass_time();
    }
    assert!(world.is_lost() && world.words.verdict() == Verdict::RolledBack);
}

/// A CPU that was kept from acting until all others had rolled back stays, and has left its guests for nothing.
#[test]
fn a_cpu_that_comes_too_late_stays() {
    let world = finished(2, Fault::Smi(1, 0, 20));
    assert_eq!(world.words.verdict(), Verdict::RolledBack);
}

#[test]
fn a_rehearsal_saves_once_and_never_leaves_the_old_image() {
    let (wires, words) = (Wires::new(2), Takeover::new());
    let view = View { wires: &wires, at: 1 };
    let mut blackout = Blackout::new(cpu(0), std::iter::once(cpu(1)));
    blackout.begin(&words, 5_000, &view);
    assert!(Outbound::rehearse(cpu(0).index, &blackout).is_none(), "it does not take part");
    let mut way = Outbound::rehearse(cpu(1).index, &blackout).expect("it takes part");
    assert!(Outbound::rehearse(cpu(1).index, &blackout).is_none(), "it has come");
    let mut acts = Vec::new();
    while acts.last() != Some(&Act::Done) {
        let act = way.next(&blackout, &words, &view);
        if act == Act::Save {
            way.saved(true);
        }
        acts.push(act);
        assert!(acts.len() < 20, "{acts:?}");
    }
    acts.retain(|act| *act != Act::Continue);
    assert_eq!(acts, [Act::LeaveGuests, Act::Save, Act::NoteReturn, Act::Done]);
    assert!(wires.interrupts[0].0.get(), "the leader counts rehearsals");
}

/// The watchdog went off once only: an NMI right before the CPU was lent left it to an image that hangs.
#[test]
fn the_watchdog_goes_off_again_if_its_nmi_came_before_the_cpu_was_lent() {
    let mut world = World::new(1, &[Fault::NewImage(0, Step::Arrive, Kind::Hangs)]);
    world.wires.send_nmi(0);
    for _ in 0..6 {
        world.step(0);
    }
    (0..WATCHDOG).for_each(|_| world.pass_time());
    world.finish(10);
    assert_eq!(world.words.verdict(), Verdict::RolledBack);
}
