// SPDX-License-Identifier: MIT OR Apache-2.0
//! The leader leaves the old image while simulated CPUs run guests that write: on any schedule, with any losses.

mod exhaustive;
mod world;

use proptest::prelude::*;
use update::restart::Act;

use world::{LIMIT_MS, Other, REMINDER_MS, World, cpu};

#[test]
fn one_cpu_alone_leaves_at_once() {
    assert!(World::new(Vec::new()).finish() < 3);
}

#[test]
#[should_panic(expected = "output is lost")]
fn output_that_is_sent_before_the_others_park_is_lost() {
    let others = vec![Other { busy_until: 100, ..Other::default() }; 3];
    let mut world = World::new(others);
    world.sends_early = true;
    world.finish();
}

#[test]
fn what_guests_write_until_they_park_is_sent() {
    let mut world = World::new(vec![Other { busy_until: 100, ..Other::default() }; 3]);
    assert!((100..110).contains(&world.finish()));
    assert!(world.written > 300);
}

#[test]
fn an_image_that_was_locked_is_not_checked_again() {
    let mut world = World::new(vec![Other::default()]);
    world.is_checked_again = false;
    world.finish();
    assert!(!world.acts.contains(&Act::CheckImage));
}

#[test]
fn a_lost_interrupt_is_repeated() {
    let mut world = World::new(vec![Other { lost: 3, ..Other::default() }]);
    let took = world.finish();
    assert!((3 * REMINDER_MS..3 * REMINDER_MS + 4).contains(&took), "{took}");
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
    assert!((LIMIT_MS..LIMIT_MS + 5).contains(&world.finish()));
    let lost: Vec<_> = world.acts.iter().filter(|act| matches!(act, Act::Lose(_))).copied().collect();
    assert_eq!(lost, [Act::Lose(cpu(0)), Act::Lose(cpu(2))]);
}

fn other() -> impl Strategy<Value = Other> {
    let busy = prop_oneof![4 => Just(0), 3 => 0..LIMIT_MS, 1 => Just(u64::MAX)];
    (0..4_u32, busy).prop_map(|(lost, busy_until)| Other { lost, busy_until, ..Other::default() })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Each choice: a CPU acts, the leader does, or a tick passes; when none is left, all do in turn.
    #[test]
    fn nothing_is_lost_on_any_schedule(
        others in prop::collection::vec(other(), 0..64),
        choices in prop::collection::vec(0..66_usize, 0..2_000),
        is_checked_again in any::<bool>(),
    ) {
        let mut world = World::new(others);
        world.is_checked_again = is_checked_again;
        let mut departure = world.departure();
        let cpus = world.cpus();
        let mut has_left = false;
        for choice in choices {
            match choice {
                65 => world.now.set(world.now.get() + 1),
                at if at < cpus => world.step(at),
                _ => has_left |= !has_left && world.lead(&mut departure) == Act::Leave,
            }
        }
        for _ in 0..LIMIT_MS + 100 {
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
