// SPDX-License-Identifier: MIT OR Apache-2.0
//! Up to 64 CPUs, several faults, random schedules.

use proptest::prelude::*;

use crate::fault::{Fault, KINDS, STEPS};
use crate::world::World;

/// The most acts and ticks of one run.
const MOST_CHOICES: u32 = 200_000;

/// The first CPU loses no NMI: where the watchdog's is lost, too, a new image that hangs everywhere has the
/// machine.
fn faults(cpus: usize) -> impl Strategy<Value = Vec<Fault>> {
    let at = 0..cpus;
    let one = prop_oneof![
        at.clone().prop_map(Fault::SaveFails),
        (at.clone(), 0..STEPS.len(), 0..KINDS.len()).prop_map(|(at, step, kind)| Fault::NewImage(
            at,
            STEPS[step],
            KINDS[kind]
        )),
        (0..STEPS.len()).prop_map(|step| Fault::AllHang(STEPS[step])),
        (at.clone(), 1..4_u32).prop_map(|(at, lost)| Fault::InterruptsLost(at, lost)),
        (1..cpus.max(2), 1..4_u32).prop_map(|(at, lost)| Fault::NmisLost(at, lost)),
        at.clone().prop_map(Fault::StrayNmi),
        (at, 0..8_u64, 1..20_u64).prop_map(|(at, from, ticks)| Fault::Smi(at, from, ticks)),
    ];
    prop::collection::vec(one, 0..4)
}

fn machine() -> impl Strategy<Value = (usize, Vec<Fault>, u64)> {
    (1..=64_usize).prop_flat_map(|cpus| (Just(cpus), faults(cpus), any::<u64>()))
}

fn next(seed: &mut u64) -> u64 {
    // SplitMix64 (Steele, Lea and Flood 2014).
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*seed ^ *seed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

/// A tick passes about once in a number of acts of each CPU, or the seed makes it rarer.
fn run(cpus: usize, faults: &[Fault], mut seed: u64) {
    let mut world = World::new(cpus, faults);
    let acts_in_a_tick = cpus as u64 * (1 << (next(&mut seed) % 5));
    for _ in 0..MOST_CHOICES {
        if world.is_over() {
            break;
        }
        match next(&mut seed) % (acts_in_a_tick + 1) {
            0 => {
                if next(&mut seed).is_multiple_of(4) {
                    world.send_stray_nmi();
                }
                world.pass_time();
            }
            choice => world.step(choice as usize % cpus),
        }
    }
    assert!(world.is_over(), "it does not end: {world:#?}");
    // Nothing follows: all stay where they are.
    world.finish(1);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn up_to_64_cpus_agree_whatever_the_schedule_and_the_faults((cpus, faults, seed) in machine()) {
        run(cpus, &faults, seed);
    }
}
