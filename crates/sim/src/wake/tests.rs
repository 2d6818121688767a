// SPDX-License-Identifier: MIT OR Apache-2.0
use bringup::startup::{Limits, Reach};
use bringup::state::Phase;
use bringup::tsc::Mode;
use bringup::{ClockSync, State, SyncOutcome};
use proptest::prelude::*;

use super::*;

const ALL: [(Policy, Reach); 4] = [
    (Policy::Serial, Reach::Each),
    (Policy::Parallel, Reach::Each),
    (Policy::Parallel, Reach::Everyone),
    (Policy::Park, Reach::Each),
];

fn total(machine: &Machine, cpus: u32, policy: Policy, reach: Reach) -> u64 {
    let outcome = simulate(machine, &Setup::new(cpus, policy, reach));
    assert_eq!(outcome.summary.online, cpus - 1);
    outcome.summary.total_ticks
}

#[test]
fn every_policy_brings_every_cpu_online() {
    for (policy, reach) in ALL {
        for cpus in [1, 2, 3, 9, 64, 65, 300] {
            let outcome = simulate(&Machine::haswell(), &Setup::new(cpus, policy, reach));
            assert_eq!((outcome.summary.online, outcome.summary.dead.len()), (cpus - 1, 0), "{policy:?}");
            assert!(outcome.cpus.iter().all(|result| result.state == State::Online && result.takes_work));
            assert!(outcome.cpus.iter().all(|result| result.resets_while_running == 0));
        }
    }
}

#[test]
fn only_those_that_are_wanted_come_and_the_others_later() {
    for policy in [Policy::Serial, Policy::Parallel] {
        let wanted: Vec<u32> = (1..100).filter(|index| index % 3 == 2).collect();
        let later = vec![1, 2, 50, 98, 99, 2];
        let base = Setup { largest_skew: 100_000, ..Setup::new(100, policy, Reach::Each) };
        let setup = Setup { wanted: Some(wanted.clone()), later: later.clone(), tsc: Mode::Measure, ..base };
        let outcome = simulate(&Machine::haswell(), &setup);
        assert_eq!((outcome.summary.online, &outcome.summary.dead), (wanted.len() as u32, &Vec::new()), "{policy:?}");
        for (index, result) in (1..).zip(&outcome.cpus) {
            let is_expected = wanted.contains(&index) || later.contains(&index);
            assert_eq!((result.state == State::Online, result.takes_work), (is_expected, is_expected), "{index}");
            assert_eq!(result.resets_while_running, 0, "{index}");
            let is_settled = matches!(result.sync.outcome, SyncOutcome::Agrees | SyncOutcome::Corrected);
            assert_eq!(is_settled, is_expected, "{index}: {:?}", result.sync);
        }
    }
}

#[test]
fn no_cpu_waits_for_an_answer_of_one_that_is_not_wanted() {
    let base = Setup { largest_skew: 100_000, tsc: Mode::Measure, ..Setup::new(100, Policy::Parallel, Reach::Each) };
    // Number 1 is the parent of some of these.
    let setup = Setup { wanted: Some((9..100).collect()), ..base };
    let outcome = simulate(&Machine::haswell(), &setup);
    let limits = Limits::new(Machine::haswell().ticks_per_us, 0);
    assert_eq!(outcome.summary.online, 91);
    assert!(outcome.summary.total_ticks < limits.answer, "{}", outcome.summary.total_ticks);
}

/// The totals in brackets of the published listing, CPUs 1 to 27 of the Haswell.
#[test]
fn the_serial_model_takes_what_was_published() {
    const PUBLISHED: [u64; 27] = [
        12_880_136, 12_625_868, 11_715_740, 11_925_884, 11_936_800, 11_717_388, 11_834_388, 11_741_944, 11_747_260,
        11_873_648, 12_962_828, 12_990_780, 12_937_768, 4_097_964, 4_120_908, 4_104_976, 3_681_888, 3_778_860,
        3_768_412, 3_687_236, 3_709_052, 3_702_680, 3_729_576, 3_737_268, 4_252_148, 4_260_624, 4_237_548,
    ];
    let published: u64 = PUBLISHED.iter().sum();
    for modelled in
        [linux_serial_ticks(&Machine::haswell(), 28), total(&Machine::haswell(), 28, Policy::Serial, Reach::Each)]
    {
        assert!(modelled.abs_diff(published) * 20 < published, "{modelled} is within 5 % of {published}");
    }
}

#[test]
fn an_early_kick_makes_the_first_wait_vanish() {
    let first_waits = |policy| {
        let outcome = simulate(&Machine::haswell(), &Setup::new(128, policy, Reach::Everyone));
        let mut waits: Vec<_> = outcome.cpus.iter().map(|result| result.waits.first_sign).collect();
        waits.sort_unstable();
        waits[waits.len() / 2]
    };
    assert!(Machine::haswell().first_sign.contains(&(first_waits(Policy::Serial) - 25 * 3 - 200 - 2_000)));
    assert!(first_waits(Policy::Parallel) * 100 <= first_waits(Policy::Serial));
    let late = simulate(&Machine::haswell(), &Setup::new(128, Policy::Parallel, Reach::Everyone)).last_first_sign;
    assert!(Machine::haswell().first_sign.contains(&late), "kicked when it waits, it waits for the slowest: {late}");
}

#[test]
fn waits_of_all_cpus_add_up_to_the_total() {
    for (policy, reach) in ALL {
        let outcome = simulate(&Machine::haswell(), &Setup::new(96, policy, reach));
        let waited: u64 = outcome.cpus.iter().map(|result| result.waits.total()).sum();
        let total = outcome.summary.total_ticks;
        assert!(waited <= total && waited * 100 >= total * 90, "{policy:?}: {waited} of {total}");
    }
}

#[test]
fn thirty_two_times_as_many_cpus_take_no_more_than_half_as_long_again() {
    let machine = Machine::haswell();
    for (policy, reach) in [(Policy::Parallel, Reach::Everyone), (Policy::Park, Reach::Each)] {
        let (few, many) = (total(&machine, 128, policy, reach), total(&machine, 4096, policy, reach));
        assert!(many * 2 <= few * 3, "{policy:?}: {few} → {many}");
    }
}

#[test]
fn each_policy_is_ten_times_as_quick_as_the_one_before() {
    let machine = Machine::haswell();
    let serial = total(&machine, 128, Policy::Serial, Reach::Each);
    let parallel = total(&machine, 128, Policy::Parallel, Reach::Everyone);
    let park = total(&machine, 128, Policy::Park, Reach::Each);
    assert!(parallel * 10 <= serial && park * 10 <= parallel);
}

#[test]
fn clocks_apart_are_measured_and_corrected_where_that_can_be_done() {
    for (policy, reach) in ALL {
        let setup = Setup { largest_skew: 1_000_000, ..Setup::new(100, policy, reach) };
        let outcome = simulate(&Machine::haswell(), &setup);
        for result in &outcome.cpus {
            assert_eq!(result.sync.outcome, SyncOutcome::Corrected, "{policy:?} {result:?}");
            assert!(result.skew.unsigned_abs() < 3_000, "{policy:?}: {} is left", result.skew);
        }
        assert_eq!(outcome.summary.online, 99);
    }
}

#[test]
fn clocks_that_cannot_be_corrected_are_reported_with_their_skew() {
    for (policy, reach) in ALL {
        let base = Setup::new(100, policy, reach);
        let outcome = simulate(&Machine::haswell(), &Setup { has_tsc_adjust: false, largest_skew: 1_000_000, ..base });
        for result in &outcome.cpus {
            let ClockSync { outcome, skew: found, .. } = result.sync;
            assert!(outcome == SyncOutcome::Differs || result.skew.abs() < 3_000, "{policy:?}: {result:?}");
            assert!((found + result.skew).abs() < 3_000, "{policy:?}: {found} found: {result:?}");
        }
    }
}

#[test]
fn equal_clocks_agree_or_are_not_even_measured() {
    let setup = Setup::new(100, Policy::Parallel, Reach::Everyone);
    let outcome = simulate(&Machine::haswell(), &setup);
    assert!(outcome.cpus.iter().all(|result| result.sync.outcome == SyncOutcome::Skipped));
    let outcome = simulate(&Machine::haswell(), &Setup { tsc: Mode::Measure, ..setup.clone() });
    assert!(outcome.cpus.iter().all(|result| result.sync.outcome == SyncOutcome::Agrees));
    let skewed = Setup { tsc: Mode::Skip, largest_skew: 1000, ..setup };
    let outcome = simulate(&Machine::haswell(), &skewed);
    assert!(outcome.cpus.iter().all(|result| result.sync.outcome == SyncOutcome::Skipped), "the operator's choice");
}

#[test]
fn measuring_thousands_of_clocks_takes_little_longer_than_waking_them() {
    let setup = Setup { has_tsc_adjust: false, ..Setup::new(1024, Policy::Parallel, Reach::Everyone) };
    let measured = simulate(&Machine::haswell(), &setup).summary.total_ticks;
    let skipped = total(&Machine::haswell(), 1024, Policy::Parallel, Reach::Everyone);
    assert!(measured * 10 <= skipped * 11, "{skipped} → {measured}");
}

/// CPUs that share real ones all ask the boot CPU, which lets them take turns.
#[test]
fn clocks_are_measured_in_turn_where_cpus_share_real_ones() {
    let base = Setup { shares_cpus: true, has_tsc_adjust: false, ..Setup::new(300, Policy::Parallel, Reach::Everyone) };
    let outcome = simulate(&Machine::virtual_skylake(), &base);
    assert_eq!((outcome.summary.online, outcome.summary.dead.len()), (299, 0));
    assert!(outcome.cpus.iter().all(|result| result.sync.outcome == SyncOutcome::Agrees));
    // A turn is a wake-up and a few lines, not a fixed time.
    let waited: u64 = outcome.cpus.iter().map(|result| result.waits.tsc_sync).sum();
    assert!(waited < 299 * 300_000, "{waited}");
}

#[test]
fn one_that_sleeps_too_long_is_given_up_and_halts_when_it_wakes() {
    for (policy, reach) in ALL {
        // It wakes while the boot CPU still waits for another that dies later.
        let too_long = Limits::new(3000, 0).first_sign + 1_000_000;
        let fates = vec![(1, Fate::Sleeps(too_long)), (2, Fate::DiesIn(Phase::Online))];
        let outcome = simulate(&Machine::haswell(), &Setup { fates, ..Setup::new(8, policy, reach) });
        let sleeper = outcome.cpus[0];
        assert_eq!((sleeper.state, sleeper.takes_work), (State::Dead(Phase::FirstSign), false));
        assert_eq!(outcome.summary.online, 5);
    }
}

#[test]
fn a_lost_start_up_interrupt_is_sent_once_more() {
    for (policy, reach) in ALL.into_iter().filter(|(policy, _)| *policy != Policy::Park) {
        let fates = vec![(3, Fate::LosesStartups(1)), (5, Fate::LosesStartups(2))];
        let outcome = simulate(&Machine::haswell(), &Setup { fates, ..Setup::new(8, policy, reach) });
        assert_eq!(outcome.summary.dead, [(5, Phase::FirstSign)]);
        assert_eq!(outcome.cpus[2].state, State::Online);
    }
}

#[test]
fn an_invalid_mailbox_costs_its_cpu_and_no_other() {
    let fates = vec![(1, Fate::BadSlot), (2, Fate::DiesIn(Phase::FirstSign))];
    let outcome = simulate(&Machine::haswell(), &Setup { fates, ..Setup::new(300, Policy::Park, Reach::Each) });
    assert_eq!(outcome.summary.dead, [(1, Phase::FirstSign), (2, Phase::FirstSign)]);
    assert_eq!(outcome.summary.online, 297, "their children, which they did not wake, among them");
}

fn any_fate() -> impl Strategy<Value = Fate> {
    let phase = prop::sample::select(Phase::ALL.to_vec());
    prop_oneof![
        phase.prop_map(Fate::DiesIn),
        (1u32..3).prop_map(Fate::LosesStartups),
        prop_oneof![0..40_000_000u64, 2_990_000_000..3_010_000_000u64].prop_map(Fate::Sleeps),
        Just(Fate::BadSlot),
    ]
}

fn is_fatal(fate: Fate, policy: Policy) -> bool {
    match fate {
        Fate::Healthy => false,
        Fate::LosesStartups(count) => count > 1 && policy != Policy::Park,
        Fate::DiesIn(_) => true,
        Fate::Sleeps(ticks) => ticks > 2_980_000_000,
        Fate::BadSlot => policy == Policy::Park,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn whichever_cpu_dies_however_the_others_go_online_and_the_wait_ends(
        way in 0usize..4,
        cpus in 2u32..90,
        fates in prop::collection::btree_map(1u32..90, any_fate(), 0..8),
        mode in prop::sample::select(vec![Mode::Auto, Mode::Measure, Mode::Skip]),
        has_tsc_adjust: bool,
        shares_cpus: bool,
        largest_skew in prop_oneof![Just(0), Just(50_000_000u64)],
        seed: u64,
    ) {
        let (policy, reach) = ALL[way];
        let fates: Vec<_> = fates.into_iter().filter(|(index, _)| *index < cpus).collect();
        let base = Setup::new(cpus, policy, reach);
        let setup = Setup { tsc: mode, has_tsc_adjust, shares_cpus, largest_skew, fates: fates.clone(), seed, ..base };
        let machine = Machine::haswell();
        let outcome = simulate(&machine, &setup);
        for (index, result) in (1..).zip(&outcome.cpus) {
            let fate = fates.iter().find(|(number, _)| *number == index).map_or(Fate::Healthy, |(_, fate)| *fate);
            prop_assert_eq!(result.takes_work, result.state == State::Online, "{} {:?}", index, fate);
            prop_assert!(result.state.has_final_clock(), "{} {:?} is {}", index, fate, result.state);
            // The CPU that is not bound to die is online; one that sleeps about as long as the limit may be either.
            if !is_fatal(fate, policy) {
                prop_assert_eq!(result.state, State::Online, "{}: {:?}", index, fate);
            }
            if let Fate::DiesIn(phase) = fate {
                prop_assert_eq!(result.state, State::Dead(phase), "{}", index);
            }
            prop_assert_eq!(result.resets_while_running, 0);
        }
        let online = outcome.cpus.iter().filter(|result| result.state == State::Online).count();
        prop_assert_eq!(outcome.summary.online as usize, online);
        prop_assert_eq!(outcome.summary.dead.len() + online, cpus as usize - 1);
        let batches = if policy == Policy::Serial { u64::from(cpus) } else { 1 };
        prop_assert!(outcome.summary.total_ticks <= batches * (Limits::new(3000, 0).total() + 100_000_000));
    }
}
