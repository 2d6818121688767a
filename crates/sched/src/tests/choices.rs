// SPDX-License-Identifier: MIT OR Apache-2.0
//! Single decisions and refusals.
use std::string::ToString;

use super::*;

#[test]
fn an_empty_or_sleeping_queue_chooses_no_vcpu() {
    let mut queue = RunQueue::<2>::new(MS);
    assert_eq!(queue.pick(Ticks(0)), None);
    queue.insert(0, Weight::DEFAULT, Ticks(1)).unwrap();
    assert_eq!((queue.pick(Ticks(1)), queue.state(0)), (None, Some(State::Blocked)));
    assert_eq!(queue.wake(0, Ticks(2)), Wakeup::PickNow);
    assert_eq!(queue.pick(Ticks(2)), Some(Choice { slot: 0, slice_end: None }));
    queue.block(0, Ticks(3));
    assert_eq!((queue.pick(Ticks(3)), queue.running()), (None, None));
}

#[test]
fn an_entity_that_yields_goes_behind_its_peers() {
    let mut cpu = Cpu::<3>::with_weights(&[100, 100, 100]);
    let mut order = std::vec::Vec::new();
    for _ in 0..6 {
        let slot = cpu.pick().unwrap().slot;
        order.push(slot);
        cpu.now += 100;
        cpu.queue.yield_now(slot, cpu.now());
    }
    assert_eq!(order, [0, 1, 2, 0, 1, 2]);
}

#[test]
fn an_entity_that_yields_is_passed_over_once_even_if_all_others_are_far_ahead() {
    let mut cpu = Cpu::<2>::with_weights(&[1024, 1]);
    while cpu.pick().unwrap().slot != 1 {
        cpu.now += MS;
    }
    cpu.now += MS;
    assert_eq!(cpu.pick().unwrap().slot, 0);
    cpu.queue.yield_now(0, cpu.now());
    assert_eq!(cpu.pick().unwrap().slot, 1);
}

#[test]
fn an_entity_that_yields_alone_runs_on() {
    let mut cpu = Cpu::<2>::with_weights(&[100]);
    cpu.pick();
    cpu.queue.yield_now(0, Ticks(5));
    assert_eq!(cpu.pick(), Some(Choice { slot: 0, slice_end: None }));
}

#[test]
fn only_the_running_one_can_yield() {
    let mut cpu = Cpu::<2>::with_weights(&[100, 100]);
    let choice = cpu.pick();
    cpu.queue.yield_now(1, Ticks(5));
    assert_eq!(cpu.pick(), choice);
}

#[test]
fn a_slice_is_not_cut_short_by_picking_often() {
    let mut cpu = Cpu::<2>::with_weights(&[100, 100]);
    let choice = cpu.pick();
    cpu.now = 3 * MS - 1;
    assert_eq!(cpu.pick(), choice);
    cpu.now = 3 * MS;
    assert_eq!(cpu.pick().unwrap().slot, 1);
}

#[test]
fn time_that_goes_backwards_stands_still() {
    let mut cpu = Cpu::<2>::with_weights(&[100, 100]);
    cpu.now = 10 * MS;
    cpu.pick();
    cpu.now = 4 * MS;
    cpu.queue.account(cpu.now());
    assert_eq!(cpu.running_ticks(0), 0);
    assert_eq!(cpu.pick().unwrap().slice_end, Some(Ticks(13 * MS)));
}

#[test]
fn the_end_of_time_is_met_without_wrapping() {
    let mut cpu = Cpu::<2>::with_weights(&[1, 1]);
    cpu.pick();
    cpu.now = u64::MAX;
    for _ in 0..3 {
        assert_eq!(cpu.pick().unwrap().slice_end, Some(Ticks(u64::MAX)));
    }
    assert_eq!(cpu.running_ticks(0), u64::MAX);
}

#[test]
fn slots_that_do_not_exist_or_are_empty_change_nothing() {
    let mut queue = RunQueue::<64>::new(MS);
    assert_eq!(queue.insert(64, Weight::DEFAULT, Ticks(0)), Err(InsertError::NoSuchSlot { slot: 64, slots: 64 }));
    queue.insert(63, Weight::DEFAULT, Ticks(0)).unwrap();
    assert_eq!(queue.insert(63, Weight::DEFAULT, Ticks(0)), Err(InsertError::Occupied { slot: 63 }));
    for slot in [0, 64, usize::MAX] {
        assert_eq!(queue.wake(slot, Ticks(1)), Wakeup::Waits);
        queue.block(slot, Ticks(1));
        queue.yield_now(slot, Ticks(1));
        assert_eq!((queue.remove(slot, Ticks(1)), queue.times(slot)), (None, None));
        assert_eq!((queue.stolen_ticks(slot), queue.pick(Ticks(1))), (Ticks(0), None));
    }
    assert_eq!(queue.wake(63, Ticks(1)), Wakeup::PickNow);
    assert_eq!(queue.pick(Ticks(1)), Some(Choice { slot: 63, slice_end: None }));
}

#[test]
fn removing_an_entity_returns_the_use_of_its_time() {
    let mut cpu = Cpu::<2>::with_weights(&[100, 100]);
    cpu.run_until(6 * MS, 0);
    let times = cpu.queue.remove(1, Ticks(7 * MS)).unwrap();
    assert_eq!(times, Times { running: Ticks(4 * MS), stolen: Ticks(3 * MS), blocked: Ticks(0) });
    assert_eq!(cpu.queue.pick(Ticks(7 * MS)), Some(Choice { slot: 0, slice_end: None }));
}

#[test]
fn time_that_the_cpu_was_lost_is_stolen_from_the_running_entity_and_charged_to_none() {
    let mut queue = queue_of_two();
    assert_eq!(queue.pick(Ticks(0)).map(|choice| choice.slot), Some(0));
    queue.account(Ticks(MS));
    queue.lose(Ticks(40 * MS));
    let times = queue.times(0).unwrap();
    assert_eq!(times, Times { running: Ticks(MS), stolen: Ticks(39 * MS), blocked: Ticks(0) });
    assert_eq!(queue.times(1).unwrap().stolen, Ticks(40 * MS));
    queue.lose(Ticks(MS));
    assert_eq!(queue.times(0), Some(times), "time does not go back");
    // Both are owed the same, but for the millisecond that the first one had.
    assert_eq!(queue.remove(0, Ticks(40 * MS)), Some(times));
}

fn queue_of_two() -> RunQueue<2> {
    let mut queue = RunQueue::new(MS);
    for slot in 0..2 {
        queue.insert(slot, Weight::DEFAULT, Ticks(0)).unwrap();
        let _ = queue.wake(slot, Ticks(0));
    }
    queue
}

#[test]
fn a_rate_that_no_clock_has_is_survived() {
    for ticks_per_ms in [0, u64::MAX] {
        let mut queue = RunQueue::<2>::new(ticks_per_ms);
        for slot in 0..2 {
            queue.insert(slot, Weight::MOST, Ticks(0)).unwrap();
            let _ = queue.wake(slot, Ticks(0));
        }
        assert!(queue.pick(Ticks(u64::MAX)).is_some());
    }
}

#[test]
fn refusals_state_the_remedy() {
    assert_eq!(Weight::new(0).unwrap_err().to_string(), "weight 0 is out of range: choose 1 to 1024 (100 is usual)");
    assert!(Weight::new(1025).is_err());
    assert_eq!(InsertError::Occupied { slot: 3 }.to_string(), "slot 3 is taken: remove what is in it first");
}
