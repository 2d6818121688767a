// SPDX-License-Identifier: MIT OR Apache-2.0
//! Invariants of any samples.

use std::vec::Vec;

use proptest::prelude::*;

use super::*;

/// A sample from a small world, so that streaks happen.
fn any_sample() -> impl Strategy<Value = (Sample, Circumstances)> {
    let place = prop_oneof![Just(0_u64), Just(0x80), Just(0x800), Just(0x9_0000)];
    let read = proptest::option::of(prop_oneof![Just(0_u64), Just(0x90), Just(0x9_0000)]);
    let around = (any::<bool>(), any::<bool>(), prop::bool::weighted(0.1), any::<bool>());
    let alive = (prop::bool::weighted(0.05), prop::bool::weighted(0.05), prop::bool::weighted(0.05));
    (place, read, any::<bool>(), 0_u64..2, around, alive).prop_map(
        |(place, read, interrupts_on, registers, around, alive)| {
            let (others_can_run, others_halted_for_good, has_reported, others_may_be_woken) = around;
            let sample = Sample {
                rip: KERNEL + place,
                cpl: if alive.0 { 3 } else { 0 },
                io: u64::from(alive.1),
                halts: u64::from(alive.2),
                interrupts_on,
                registers,
                clock_read_at: read.map(|at| KERNEL + at),
                ..delay_loop(0)
            };
            (sample, Circumstances { has_reported, others_can_run, others_halted_for_good, others_may_be_woken })
        },
    )
}

/// The same samples with the times and the running counts that a host would give them.
fn in_turn(samples: Vec<(Sample, Circumstances)>) -> Vec<(Sample, Circumstances)> {
    let (mut io, mut halts) = (0, 0);
    let numbered = samples.into_iter().enumerate().map(|(index, (sample, around))| {
        (io, halts) = (io + sample.io, halts + sample.halts);
        (Sample { now: index as u64 * SAMPLE_MS * MS, io, halts, ..sample }, around)
    });
    numbered.collect()
}

proptest! {
    /// No accusation without a run of samples in kernel mode, without I/O, long enough for its kind.
    #[test]
    fn an_accusation_has_its_reasons(samples in proptest::collection::vec(any_sample(), 1..400)) {
        let samples = in_turn(samples);
        let mut watch = Watch::new(MS, 2000);
        let mut quiet = 0;
        for (index, (sample, around)) in samples.iter().enumerate() {
            let before = index.checked_sub(1).map(|before| samples[before].0);
            let is_quiet = before.is_some_and(|it| sample.cpl == 0 && it.cpl == 0 && sample.io == it.io && sample.halts == it.halts);
            quiet = if is_quiet { quiet + 1 } else { 0 };
            match watch.sample(sample, *around) {
                Finding::Spins(Diagnosis::Panicked) if !around.has_reported => {
                    prop_assert!(quiet >= ENOUGH && !around.others_can_run);
                }
                Finding::Spins(Diagnosis::Panicked) => prop_assert!(quiet >= 1),
                Finding::Spins(Diagnosis::Hung) => {
                    prop_assert!(!sample.interrupts_on && quiet as u64 * SAMPLE_MS >= 2000);
                }
                Finding::Recovered | Finding::Suspect | Finding::Unremarkable => {}
            }
        }
    }

    /// Spinning and recovering alternate, and a guest that shows life is never left accused.
    #[test]
    fn life_ends_every_accusation(samples in proptest::collection::vec(any_sample(), 1..400)) {
        let mut watch = Watch::new(MS, 500);
        let mut accused = false;
        for (sample, around) in in_turn(samples) {
            match watch.sample(&sample, around) {
                Finding::Spins(_) => { prop_assert!(!accused); accused = true; }
                Finding::Recovered => { prop_assert!(accused); accused = false; }
                Finding::Suspect => prop_assert!(!accused),
                Finding::Unremarkable => {}
            }
            prop_assert_eq!(watch.diagnosis().is_some(), accused);
            prop_assert!(!accused || sample.cpl == 0);
        }
    }

    /// Whatever the registers hold and however the clock jumps, nothing overflows.
    #[test]
    fn any_values_are_borne(words in proptest::collection::vec(any::<[u64; 8]>(), 1..50), rate: u64, limit: u64) {
        let mut watch = Watch::new(rate, limit);
        for [now, rip, rsp, cr3, io, halts, registers, read] in words {
            let clock_read_at = (read & 1 != 0).then_some(read);
            let (cpl, interrupts_on) = ((registers & 3) as u8, read & 2 != 0);
            let sample = Sample { now, rip, rsp, cr3, cpl, interrupts_on, io, halts, registers, clock_read_at };
            let due = watch.due(now);
            watch.sample(&sample, Circumstances::default());
            prop_assert!(watch.due(due) >= now);
        }
    }
}
