// SPDX-License-Identifier: MIT OR Apache-2.0
//! The invariants of a queue hold after any operations in any order.
use std::vec::Vec;

use proptest::prelude::*;

use super::*;

const SLOTS: usize = 5;

#[derive(Clone, Debug)]
enum Step {
    Insert(usize, u32),
    Remove(usize),
    Wake(usize),
    Block(usize),
    Yield(usize),
    Pick,
}

fn step() -> impl Strategy<Value = Step> {
    let slot = 0..SLOTS + 1;
    prop_oneof![
        (slot.clone(), 1..=1024_u32).prop_map(|(slot, weight)| Step::Insert(slot, weight)),
        slot.clone().prop_map(Step::Remove),
        slot.clone().prop_map(Step::Wake),
        slot.clone().prop_map(Step::Block),
        slot.prop_map(Step::Yield),
        Just(Step::Pick),
        Just(Step::Pick),
    ]
}

fn equal_step() -> impl Strategy<Value = Step> {
    step().prop_map(|step| match step {
        Step::Insert(slot, _) => Step::Insert(slot, u32::from(Weight::DEFAULT.get())),
        other => other,
    })
}

/// A step and how the clock moves before it: now and then backwards.
fn script() -> impl Strategy<Value = Vec<(Step, i64)>> {
    let span = prop_oneof![4 => 0..10 * MS as i64, 1 => -(MS as i64)..0, 1 => 0..1_i64 << 55];
    prop::collection::vec((step(), span), 1..120)
}

fn states(queue: &RunQueue<SLOTS>) -> Vec<State> {
    (0..SLOTS).filter_map(|slot| queue.state(slot)).collect()
}

fn apply(queue: &mut RunQueue<SLOTS>, inserted: &mut [u64; SLOTS], step: &Step, now: u64, latest: u64) {
    match *step {
        Step::Insert(slot, weight) => {
            if queue.insert(slot, super::weight(weight), Ticks(now)).is_ok() {
                inserted[slot] = latest;
            }
        }
        Step::Remove(slot) => drop(queue.remove(slot, Ticks(now))),
        Step::Wake(slot) => {
            let is_idle = queue.running().is_none();
            let was_blocked = queue.state(slot) == Some(State::Blocked);
            let wakeup = queue.wake(slot, Ticks(now));
            assert!(!(is_idle && was_blocked) || wakeup == Wakeup::PickNow, "an idle CPU was not notified");
        }
        Step::Block(slot) => queue.block(slot, Ticks(now)),
        Step::Yield(slot) => queue.yield_now(slot, Ticks(now)),
        Step::Pick => {
            let is_wanted = states(queue).iter().any(|&state| state != State::Blocked);
            let choice = queue.pick(Ticks(now));
            assert_eq!(choice.is_some(), is_wanted, "the CPU idles while an entity wants it, or the reverse");
            let is_shared = states(queue).contains(&State::Runnable);
            assert_eq!(choice.map(|choice| choice.slot), queue.running());
            assert_eq!(choice.is_some_and(|choice| choice.slice_end.is_some()), is_shared);
            assert!(choice.and_then(|choice| choice.slice_end).is_none_or(|end| end.0 >= latest));
        }
    }
}

fn check(queue: &RunQueue<SLOTS>, inserted: &[u64; SLOTS], now: u64) {
    let running: Vec<_> = (0..SLOTS).filter(|&slot| queue.state(slot) == Some(State::Running)).collect();
    assert_eq!(running, queue.running().into_iter().collect::<Vec<_>>());
    let blocked: Vec<_> = (0..SLOTS).filter(|&slot| queue.state(slot) == Some(State::Blocked)).collect();
    assert_eq!(blocked, queue.blocked().collect::<Vec<_>>());
    for (slot, inserted) in inserted.iter().enumerate() {
        if let Some(times) = queue.times(slot) {
            let sum = times.running.0 + times.stolen.0 + times.blocked.0;
            assert_eq!(sum, now - inserted, "slot {slot}: {times:?}");
        }
    }
}

proptest! {
    #[test]
    fn the_cpu_is_never_idle_while_wanted_and_all_time_is_accounted_for(script in script()) {
        let mut queue = RunQueue::<SLOTS>::new(MS);
        let (mut now, mut latest, mut inserted) = (0_u64, 0_u64, [0; SLOTS]);
        for (step, span) in script {
            now = now.saturating_add_signed(span);
            latest = latest.max(now);
            apply(&mut queue, &mut inserted, &step, now, latest);
            check(&queue, &inserted, latest);
        }
    }

    /// After any past, equals that all want to run get equal shares from then on: apart by no more than that past.
    #[test]
    fn no_past_spoils_the_future(script in prop::collection::vec((equal_step(), 0..10 * MS), 1..120)) {
        const SECOND: u64 = 1000 * MS;
        let mut cpu = Cpu::<SLOTS> { queue: RunQueue::new(MS), now: 0 };
        let mut inserted = [0; SLOTS];
        for (step, span) in script {
            cpu.now += span;
            apply(&mut cpu.queue, &mut inserted, &step, cpu.now, cpu.now);
        }
        let past = cpu.now;
        for slot in 0..SLOTS {
            let _ = cpu.queue.insert(slot, Weight::DEFAULT, Ticks(past));
            let _ = cpu.wake(slot);
        }
        let before: Vec<_> = (0..SLOTS).map(|slot| cpu.running_ticks(slot)).collect();
        cpu.run_until(past + 60 * SECOND, 0);
        for (slot, before) in before.into_iter().enumerate() {
            let share = cpu.running_ticks(slot) - before;
            let bound = past + (PERIOD_MS + SLEEPER_CREDIT_MS) * MS;
            prop_assert!(share.abs_diff(12 * SECOND) <= bound, "slot {} ran {}", slot, share);
        }
    }
}
