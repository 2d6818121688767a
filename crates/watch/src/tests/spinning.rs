// SPDX-License-Identifier: MIT OR Apache-2.0
//! Findings, their delay, and their end.

use std::vec;

use super::*;

#[test]
fn a_kernel_that_only_waits_has_panicked_within_a_second() {
    let (samples, diagnosis) = first_spin((0..20).map(delay_loop), ALONE).expect("found");
    assert_eq!(diagnosis, Diagnosis::Panicked);
    assert!((samples as u64 + 2) * SAMPLE_MS <= 1000, "{samples} samples");
}

#[test]
fn a_reboot_timeout_runs_with_interrupts_off_and_is_a_panic_too() {
    let samples = (0..20).map(|index| Sample { interrupts_on: false, ..delay_loop(index) });
    let mut watch = Watch::new(MS, 0);
    findings(&mut watch, samples.clone(), LAST);
    assert!(watch.counts_down());
    watch.sample(&delay_loop(20), LAST);
    assert!(!watch.counts_down(), "with interrupts on there is nothing to count");
    assert_eq!(first_spin(samples, LAST).map(|(_, diagnosis)| diagnosis), Some(Diagnosis::Panicked));
}

#[test]
fn an_interrupt_handler_caught_now_and_then_changes_nothing() {
    let handler = |index| Sample { rip: KERNEL + 0x9_0000, rsp: 0xffff_c900_0000_0f00, ..delay_loop(index) };
    for caught in 0..6 {
        let samples = (0..20).map(|index| if index == caught { handler(index) } else { delay_loop(index) });
        let (samples, _) = first_spin(samples, ALONE).expect("found");
        assert!(samples <= 8, "caught at {caught}: {samples} samples");
    }
}

#[test]
fn standing_still_is_a_panic_once_the_others_have_halted_for_good() {
    assert_eq!(first_spin((0..20).map(polling), LAST), Some((6, Diagnosis::Panicked)));
}

/// Their interrupts are off while they wait for a lock that this one holds: nothing distinguishes that from a panic.
#[test]
fn others_that_may_be_woken_take_far_more_signs() {
    let waiting = Circumstances { others_may_be_woken: true, ..LAST };
    let enough = ENOUGH << WAIT_DOUBT;
    assert!(u64::from(enough) * SAMPLE_MS > 12_000, "longer than a kernel holds a lock");
    for sample in [delay_loop, polling] {
        assert_eq!(first_spin((0..u64::from(enough)).map(sample), waiting), None);
        let found = first_spin((0..1000).map(sample), waiting).expect("found");
        assert_eq!(found, (enough as usize + 1, Diagnosis::Panicked));
    }
    let reported = Circumstances { has_reported: true, ..waiting };
    assert_eq!(first_spin((0..20).map(delay_loop), reported), Some((2, Diagnosis::Panicked)), "it needs no proof");
}

#[test]
fn a_reported_panic_needs_no_proof() {
    let reported = Circumstances { has_reported: true, ..IN_COMPANY };
    assert_eq!(first_spin((0..20).map(delay_loop), reported), Some((2, Diagnosis::Panicked)));
}

#[test]
fn interrupts_off_for_the_limit_is_hung_and_not_before() {
    let masked = |index| Sample { interrupts_on: false, registers: index, clock_read_at: None, ..delay_loop(index) };
    let (samples, diagnosis) = first_spin((0..200).map(masked), IN_COMPANY).expect("found");
    assert_eq!((samples, diagnosis), (126, Diagnosis::Hung));
    let mut never = Watch::new(MS, 0);
    assert!(!findings(&mut never, (0..1000).map(masked), IN_COMPANY).iter().any(|it| matches!(it, Finding::Spins(_))));
    let with_a_gap = (0..150).map(|index| Sample { interrupts_on: index == 75, ..masked(index) });
    assert_eq!(first_spin(with_a_gap, IN_COMPANY), None);
}

/// It is paused for a minute after 5 of its 10 seconds: all 10 begin again.
#[test]
fn a_pause_is_no_spin() {
    let masked = |index, paused_ms| {
        let sample = delay_loop(index);
        Sample {
            now: sample.now + paused_ms * MS,
            interrupts_on: false,
            registers: index,
            clock_read_at: None,
            ..sample
        }
    };
    let mut watch = Watch::new(MS, 10_000);
    findings(&mut watch, (0..63).map(|index| masked(index, 0)), IN_COMPANY);
    watch.resume();
    let resumed = (63..200).map(|index| masked(index, 60_000));
    let found = findings(&mut watch, resumed, IN_COMPANY);
    let hung = found.iter().position(|finding| *finding == Finding::Spins(Diagnosis::Hung));
    assert_eq!(hung, Some(125), "as many samples as of one that has just begun");
    watch.resume();
    assert_eq!(watch.diagnosis(), Some(Diagnosis::Hung), "it is none the better for a pause");
    assert_eq!(watch.sample(&masked(200, 120_000), IN_COMPANY), Finding::Unremarkable);
}

#[test]
fn every_way_out_of_the_spin_is_a_recovery_at_the_next_sample() {
    let away = |index| Sample { rip: KERNEL + 0x9_0000, ..delay_loop(index) };
    let ways_out: [fn(Sample) -> Sample; 4] = [
        |sample| Sample { io: sample.io + 1, ..sample },
        |sample| Sample { halts: sample.halts + 1, ..sample },
        |sample| Sample { cpl: 3, ..sample },
        |sample| Sample { cr3: 0x5000, ..sample },
    ];
    for way_out in ways_out {
        let mut watch = Watch::new(MS, 0);
        findings(&mut watch, (0..10).map(delay_loop), ALONE);
        assert_eq!(watch.diagnosis(), Some(Diagnosis::Panicked));
        assert_eq!(watch.sample(&way_out(delay_loop(10)), ALONE), Finding::Recovered);
        assert_eq!(watch.diagnosis(), None);
    }
    let mut watch = Watch::new(MS, 0);
    findings(&mut watch, (0..10).map(delay_loop), ALONE);
    assert_eq!(
        findings(&mut watch, [delay_loop(10), away(11), delay_loop(12), away(13), away(14)], ALONE),
        vec![
            Finding::Unremarkable,
            Finding::Unremarkable,
            Finding::Unremarkable,
            Finding::Unremarkable,
            Finding::Recovered
        ],
        "a handler that is caught is no way out, other code twice in a row is"
    );
}

#[test]
fn what_depends_on_the_others_ends_when_they_run_again() {
    let mut watch = Watch::new(MS, 0);
    findings(&mut watch, (0..10).map(delay_loop), ALONE);
    assert_eq!(watch.sample(&delay_loop(10), IN_COMPANY), Finding::Recovered);
}

#[test]
fn a_guest_that_waits_for_an_interrupt_has_recovered() {
    let mut watch = Watch::new(MS, 0);
    findings(&mut watch, (0..10).map(delay_loop), ALONE);
    assert!(watch.idle());
    assert!(!watch.idle());
}

#[test]
fn a_wrong_guess_makes_the_next_one_slower() {
    let mut watch = Watch::new(MS, 0);
    let mut needed = std::vec::Vec::new();
    for _ in 0..10 {
        let found = (0..).find(|&index| matches!(watch.sample(&delay_loop(index), ALONE), Finding::Spins(_)));
        needed.extend(found);
        assert!(watch.idle());
    }
    assert_eq!(needed, [5, 10, 20, 40, 80, 160, 320, 320, 320, 320]);
}
