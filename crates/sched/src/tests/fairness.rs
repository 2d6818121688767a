// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shares of entities that always want to run.
use std::vec::Vec;

use proptest::prelude::*;

use super::*;

/// The largest distance of an entity's time from its due, relative to its due.
fn fairness_error(weights: &[u32], duration: u64, exit_ticks: u64) -> f64 {
    let mut cpu = Cpu::<32>::with_weights(weights);
    cpu.run_until(duration, exit_ticks);
    let total: u32 = weights.iter().sum();
    let error = |(slot, &weight): (usize, &u32)| {
        let due = duration as f64 * f64::from(weight) / f64::from(total);
        (cpu.running_ticks(slot) as f64 - due).abs() / due
    };
    weights.iter().enumerate().map(error).fold(0.0, f64::max)
}

/// Returns how long an entity of this weight may have to wait: for as long as the others need to catch up with one
/// slice of it, and for the slice of each.
fn longest_wait(weights: &[u32], weight: u32) -> u64 {
    let total: u32 = weights.iter().sum();
    let slice = |weight: u32| (PERIOD_MS * MS * u64::from(weight) / u64::from(total)).max(LEAST_SLICE_MS * MS);
    let slices: u64 = weights.iter().map(|&weight| slice(weight)).sum();
    slice(weight) * u64::from(total) / u64::from(weight) + slices
}

#[test]
fn weights_1_1_2_4_get_their_shares_of_a_second_within_2_percent() {
    for scale in [1, 100, 256] {
        let weights = [1, 1, 2, 4].map(|weight| weight * scale);
        for exit_ticks in [0, 5_000, MS / 10] {
            let error = fairness_error(&weights, 1000 * MS, exit_ticks);
            assert!(error <= 0.02, "weights times {scale}, exits {exit_ticks} ticks late: {error}");
        }
    }
}

#[test]
fn equals_take_turns() {
    let mut cpu = Cpu::<4>::with_weights(&[100, 100, 100]);
    let mut order = Vec::new();
    for _ in 0..9 {
        let choice = cpu.pick().unwrap();
        assert_eq!(choice.slice_end, Some(Ticks(cpu.now + 2 * MS)));
        order.push(choice.slot);
        cpu.now += 2 * MS;
    }
    assert_eq!(order, [0, 1, 2, 0, 1, 2, 0, 1, 2]);
}

#[test]
fn the_heaviest_does_not_starve_the_lightest() {
    let mut cpu = Cpu::<2>::with_weights(&[1024, 1]);
    cpu.run_until(10 * 1025 * MS, 0);
    assert!(cpu.running_ticks(1) >= 9 * MS, "{}", cpu.running_ticks(1));
}

proptest! {
    // Each case simulates minutes.
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn over_many_periods_any_weights_get_their_shares(
        weights in prop::collection::vec(20_u32..=1024, 1..=32),
        exit_ticks in 0..MS / 20,
    ) {
        // The lightest of 32 runs one least slice in every few of the others': a hundred of those.
        let total: u32 = weights.iter().sum();
        let lightest = *weights.iter().min().unwrap();
        let duration = 100 * MS * u64::from(total) / u64::from(lightest);
        let error = fairness_error(&weights, duration, exit_ticks);
        prop_assert!(error <= 0.02, "{error}");
    }

    #[test]
    fn no_vcpu_waits_longer_than_the_bound(weights in prop::collection::vec(1_u32..=1024, 2..=8)) {
        let mut cpu = Cpu::<8>::with_weights(&weights);
        let mut last_ran = std::vec![0; weights.len()];
        for _ in 0..10_000 {
            let choice = cpu.pick().unwrap();
            for (slot, &weight) in weights.iter().enumerate() {
                let waited = cpu.now - last_ran[slot];
                prop_assert!(waited <= longest_wait(&weights, weight), "slot {} waited {}", slot, waited);
            }
            cpu.now = choice.slice_end.unwrap().0;
            last_ran[choice.slot] = cpu.now;
        }
    }
}

#[test]
fn a_weight_that_changes_counts_from_then_on() {
    let mut cpu = Cpu::<4>::with_weights(&[100, 100]);
    cpu.run_until(1000 * MS, MS / 10);
    let before = [0, 1].map(|slot| cpu.running_ticks(slot));
    let now = cpu.now();
    cpu.queue.set_weight(1, Weight::new(300).expect("possible"), now);
    cpu.run_until(3000 * MS, MS / 10);
    let [first, second] = [0, 1].map(|slot| cpu.running_ticks(slot) - before[slot]);
    let share = second as f64 / (first + second) as f64;
    assert!((share - 0.75).abs() < 0.02, "the share of weight 300 of 400 is {share}");
    // It blocks with the weight that it has: no weight is left over.
    for slot in [0, 1] {
        cpu.queue.block(slot, now);
    }
    cpu.queue.set_weight(0, Weight::new(1).expect("possible"), now);
    assert_eq!(cpu.queue.pick(now), None);
}
