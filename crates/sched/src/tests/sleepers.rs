// SPDX-License-Identifier: MIT OR Apache-2.0
//! Entities that sleep and wake among others that always want to run.
use std::vec::Vec;

use proptest::prelude::*;

use super::*;

const SLEEPER: usize = 0;

/// Entities of these weights that have all run for a while; then the first sleeps.
fn with_a_sleeper(weights: &[u32], sleep_ticks: u64) -> Cpu<8> {
    let mut cpu = Cpu::with_weights(weights);
    cpu.run_until(50 * MS, 0);
    cpu.queue.block(SLEEPER, cpu.now());
    let until = cpu.now + sleep_ticks;
    cpu.run_until(until, 0);
    cpu
}

#[test]
fn a_sleeper_that_wakes_has_the_cpu_at_once() {
    for others in 1..8 {
        let mut cpu = with_a_sleeper(&[100; 8][..=others], 1000 * MS);
        assert_eq!(cpu.wake(SLEEPER), Wakeup::PickNow);
        assert_eq!(cpu.pick().unwrap().slot, SLEEPER);
    }
}

#[test]
fn after_however_long_a_sleep_the_others_wait_for_a_credit_and_a_slice_at_most() {
    for sleep_ms in [100, 10_000, 1_000_000] {
        let mut cpu = with_a_sleeper(&[100, 100, 100], sleep_ms * MS);
        let _ = cpu.wake(SLEEPER);
        let woken_at = cpu.now;
        while let Some(Choice { slot: SLEEPER, slice_end }) = cpu.pick() {
            cpu.now = slice_end.unwrap().0;
        }
        let ran = cpu.now - woken_at;
        assert!((SLEEPER_CREDIT_MS * MS..=(SLEEPER_CREDIT_MS + PERIOD_MS) * MS).contains(&ran), "{ran}");
    }
}

#[test]
fn one_that_has_had_its_share_does_not_overtake_by_a_short_sleep() {
    let mut cpu = Cpu::<2>::with_weights(&[100, 100]);
    cpu.run_until(60 * MS, 0);
    let choice = cpu.pick().unwrap();
    cpu.now += WAKE_MARGIN_MS * MS / 2;
    let other = 1 - choice.slot;
    cpu.queue.block(other, cpu.now());
    assert_eq!(cpu.wake(other), Wakeup::Waits);
    assert_eq!(cpu.pick().unwrap(), choice);
}

#[test]
fn a_lone_entitys_slice_gets_an_end_when_another_wakes() {
    let mut cpu = Cpu::<2>::with_weights(&[100]);
    assert_eq!(cpu.pick(), Some(Choice { slot: 0, slice_end: None }));
    cpu.now = 1;
    cpu.queue.insert(1, Weight::DEFAULT, Ticks(1)).unwrap();
    assert_eq!(cpu.wake(1), Wakeup::PickNow);
    assert_eq!(cpu.pick(), Some(Choice { slot: 0, slice_end: Some(Ticks(1 + 3 * MS)) }));
    cpu.queue.block(1, cpu.now());
    assert_eq!(cpu.pick(), Some(Choice { slot: 0, slice_end: None }));
}

#[test]
fn time_alone_is_not_held_against_an_entity_nor_saved_up_by_those_that_slept() {
    let mut cpu = Cpu::<2>::with_weights(&[1, 1]);
    cpu.queue.block(1, Ticks(0));
    cpu.run_until(86_400_000 * MS, 0);
    cpu.queue.block(0, cpu.now());
    cpu.now += MS;
    let (_, _) = (cpu.wake(0), cpu.wake(1));
    let before = [cpu.running_ticks(0), cpu.running_ticks(1)];
    let until = cpu.now + 1000 * MS;
    cpu.run_until(until, 0);
    let share = [0, 1].map(|slot| cpu.running_ticks(slot) - before[slot]);
    assert!(share[0].abs_diff(share[1]) <= (SLEEPER_CREDIT_MS + PERIOD_MS) * MS, "{share:?}");
}

/// One that runs alone, and a sleeper that it has something for.
fn with_a_receiver() -> Cpu<8> {
    let mut cpu = with_a_sleeper(&[100, 100], 1000 * MS);
    assert_eq!(cpu.queue.wake_behind(SLEEPER, cpu.now()), Wakeup::PickNow);
    let end = Ticks(cpu.now + 3 * MS);
    assert_eq!(cpu.pick(), Some(Choice { slot: 1, slice_end: Some(end) }));
    cpu
}

#[test]
fn one_that_the_running_one_has_something_for_waits_for_the_end_of_its_slice() {
    let mut cpu = with_a_receiver();
    cpu.now += 3 * MS - 1;
    assert_eq!(cpu.queue.wake_behind(SLEEPER, cpu.now()), Wakeup::Waits);
    assert_eq!(cpu.pick().unwrap().slot, 1);
    cpu.now += 1;
    assert_eq!(cpu.pick().unwrap().slot, SLEEPER);
}

#[test]
fn it_has_the_cpu_as_soon_as_the_running_one_waits_or_makes_way() {
    let mut cpu = with_a_receiver();
    cpu.queue.block(1, cpu.now());
    assert_eq!(cpu.pick(), Some(Choice { slot: SLEEPER, slice_end: None }));

    let mut cpu = with_a_receiver();
    cpu.now += 1000;
    cpu.queue.make_way(cpu.now());
    assert_eq!(cpu.pick().unwrap().slot, SLEEPER);
    // The one that made way has run more: it waits for its turn.
    cpu.queue.make_way(cpu.now());
    assert_eq!(cpu.pick().unwrap().slot, SLEEPER);
}

#[test]
fn a_sleeper_that_wakes_goes_before_one_that_the_running_one_has_something_for() {
    let mut cpu = Cpu::<3>::with_weights(&[100, 100, 100]);
    cpu.run_until(60 * MS, 0);
    (0..2).for_each(|slot| cpu.queue.block(slot, cpu.now()));
    let until = cpu.now + 1000 * MS;
    cpu.run_until(until, 0);
    let _ = cpu.queue.wake_behind(0, cpu.now());
    assert_eq!(cpu.pick().unwrap().slot, 2);
    cpu.now += MS;
    let _ = cpu.wake(1);
    assert_eq!(cpu.pick().unwrap().slot, 1);
}

#[test]
fn none_makes_way_where_none_runs_or_none_waits() {
    let mut cpu = Cpu::<2>::with_weights(&[100]);
    cpu.queue.make_way(cpu.now());
    assert_eq!(cpu.pick(), Some(Choice { slot: 0, slice_end: None }));
    cpu.queue.make_way(cpu.now());
    assert_eq!(cpu.pick(), Some(Choice { slot: 0, slice_end: None }));
    assert_eq!(cpu.queue.wake_behind(1, cpu.now()), Wakeup::Waits);
}

proptest! {
    /// Running for a bit and sleeping for a bit, over and over, gains no entity more than a share and one credit.
    #[test]
    fn short_sleeps_gain_no_more_than_one_credit(
        periods in prop::collection::vec((1..5 * MS, 1..20 * MS, any::<bool>()), 1..200),
        sleeper_weight in 1_u32..=1024,
    ) {
        let mut cpu = Cpu::<3>::with_weights(&[sleeper_weight, 100, 100]);
        for (run, sleep, is_behind) in periods {
            let target = cpu.running_ticks(SLEEPER) + run;
            while cpu.running_ticks(SLEEPER) < target {
                let choice = cpu.pick().unwrap();
                let end = choice.slice_end.map_or(u64::MAX, |end| end.0);
                let left = target - cpu.running_ticks(SLEEPER);
                cpu.now = if choice.slot == SLEEPER { end.min(cpu.now + left) } else { end };
                cpu.queue.account(cpu.now());
            }
            cpu.queue.block(SLEEPER, cpu.now());
            let until = cpu.now + sleep;
            cpu.run_until(until, 0);
            let _ = match is_behind {
                true => cpu.queue.wake_behind(SLEEPER, cpu.now()),
                false => cpu.wake(SLEEPER),
            };
        }
        let due = cpu.now as f64 * f64::from(sleeper_weight) / f64::from(sleeper_weight + 200);
        let most = due + ((SLEEPER_CREDIT_MS + PERIOD_MS) * MS) as f64;
        prop_assert!(cpu.running_ticks(SLEEPER) as f64 <= most);
    }
}

/// Event between two stretches of time: a sleeper wakes or goes to sleep, or the running one yields.
#[derive(Clone, Copy, Debug)]
enum Happening {
    Wake(usize),
    Sleep(usize),
    Yield,
}

const AWAKE: usize = 3;

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        4 => (AWAKE..8_usize).prop_map(Happening::Wake),
        3 => (AWAKE..8_usize).prop_map(Happening::Sleep),
        1 => Just(Happening::Yield),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whichever entity wakes, sleeps and yields around them, those that always want to run are apart by no more than a
    /// slice and what each yield gives away, in time divided by weight.
    #[test]
    fn those_that_never_sleep_share_by_weight_whatever_others_do(
        weights in prop::collection::vec(20_u32..=1024, 8),
        script in prop::collection::vec((happening(), 0..20 * MS), 1..300),
    ) {
        let mut cpu = Cpu::<8>::with_weights(&weights);
        (AWAKE..8).for_each(|slot| cpu.queue.block(slot, Ticks(0)));
        let mut yields = 0;
        for (happening, span) in script {
            match happening {
                Happening::Wake(slot) => drop(cpu.wake(slot)),
                Happening::Sleep(slot) => cpu.queue.block(slot, cpu.now()),
                Happening::Yield => {
                    if let Some(slot) = cpu.queue.running() {
                        cpu.queue.yield_now(slot, cpu.now());
                        yields += 1;
                    }
                }
            }
            let until = cpu.now + span;
            cpu.run_until(until, 0);
        }
        let virtual_times: Vec<f64> =
            (0..AWAKE).map(|slot| cpu.running_ticks(slot) as f64 / f64::from(weights[slot])).collect();
        let most = virtual_times.iter().copied().fold(0.0, f64::max);
        let least = virtual_times.iter().copied().fold(f64::MAX, f64::min);
        let lightest = f64::from(weights[..AWAKE].iter().copied().min().unwrap());
        let of_a_slice = (PERIOD_MS * MS) as f64 / lightest;
        let bound = of_a_slice * f64::from(2 + yields);
        prop_assert!(most - least <= bound, "{virtual_times:?} are apart by more than {bound}");
    }
}
