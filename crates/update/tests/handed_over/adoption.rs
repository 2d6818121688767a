// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests made ready in the new image, with a fault at each step.

use handover::layout::guests::guest_flag;
use update::adoption::{Mismatch, Refused};

use crate::image::{Fault, Image, Problem, Vcpu};
use crate::record::{GuestSample, Sample};

/// Two guests on two CPUs, and one that has ended in between.
fn sample() -> Sample {
    let ended = GuestSample { has_run: false, ..GuestSample::on(&[0]) };
    Sample { guests: vec![GuestSample::on(&[0, 1]), ended, GuestSample::on(&[1])], ..Sample::default() }
}

fn refused(problem: Mismatch, guest: Option<usize>) -> Result<(), Refused<Problem>> {
    Err(Refused { guest, problem: Problem::Mismatch(problem) })
}

#[test]
fn each_vcpu_is_restored_by_the_cpu_that_had_it() {
    let (sample, mut on) = (sample(), [Vec::new(), Vec::new()]);
    let mut image = Image::beside(&sample, Fault::None);
    assert_eq!(image.prepare(&sample), Ok(()));
    assert_eq!(image.restore(0, &mut on[0]), Ok(()));
    assert_eq!(image.restore(1, &mut on[1]), Ok(()));
    // Verified, rehearsed, and in earnest.
    let vcpu = |guest, number| Vcpu { guest, number, restored: 3, verified: 1 };
    assert_eq!(on, [vec![vcpu(0, 0)], vec![vcpu(0, 1), vcpu(2, 0)]]);
}

#[test]
fn a_guest_is_built_after_its_status_and_paused_before_anybody_sees_its_run() {
    let mut sample = sample();
    sample.guests[2].flags = guest_flag::STANDS_STILL | guest_flag::IS_HELD;
    let mut image = Image::beside(&sample, Fault::None);
    assert_eq!(image.adopt(&sample), Ok(()));
    let first = [("status", 0), ("build", 0), ("run", 0), ("status", 1)];
    let last = [("status", 2), ("build", 2), ("pause", 2), ("hold", 2), ("run", 2)];
    assert_eq!(image.acts, [&first[..], &last[..]].concat());
}

#[test]
fn memory_rises_in_the_guests_view_whatever_it_does_in_the_machines() {
    let sample = sample();
    let mut image = Image::beside(&sample, Fault::None);
    assert_eq!(image.adopt(&sample), Ok(()));
    let memory = &image.plans[0].memory;
    assert_eq!(memory.iter().map(|(_, guest_address)| *guest_address).collect::<Vec<_>>(), [0, 4096]);
    assert!(memory[0].0.start() > memory[1].0.start());
}

#[test]
fn what_the_bundle_describes_otherwise_is_refused_before_anything_is_built() {
    let sample = sample();
    let mut fewer = Image::beside(&sample, Fault::None);
    fewer.names.pop();
    assert_eq!(fewer.adopt(&sample), refused(Mismatch::OtherGuests, None));
    let mut renamed = Image::beside(&sample, Fault::None);
    renamed.names[2] = "another".to_owned();
    assert_eq!(renamed.adopt(&sample), refused(Mismatch::OtherConfig, Some(2)));
    let mut changed = Image::beside(&sample, Fault::None);
    changed.digests[0] += 1;
    assert_eq!(changed.adopt(&sample), refused(Mismatch::OtherConfig, Some(0)));
    assert!(fewer.acts.is_empty() && changed.acts.is_empty() && !renamed.acts.contains(&("status", 2)));
}

#[test]
fn a_vcpu_without_a_block_is_refused() {
    let sample = sample();
    let mut more = sample.clone();
    more.guests[2].cpus.push(0);
    // The image builds one more than the hand-over block has.
    assert_eq!(Image::beside(&more, Fault::None).adopt(&sample), refused(Mismatch::NoVcpu, Some(2)));
}

#[test]
fn a_fault_at_any_step_of_the_preparation_ends_the_trial_and_is_named() {
    let faults = [
        Fault::Build(0),
        Fault::Build(2),
        Fault::Verify(0, 0),
        Fault::Verify(0, 1),
        Fault::RestoreVcpu(2, 0),
        Fault::RestoreDevices(0),
        Fault::RestoreDevices(2),
    ];
    for fault in faults {
        let sample = sample();
        assert_eq!(Image::beside(&sample, fault).prepare(&sample), Err(Problem::Fault(fault)));
    }
}

#[test]
fn a_vcpu_that_cannot_be_restored_is_not_taken_and_neither_is_any_behind_it() {
    let sample = sample();
    let mut image = Image::beside(&sample, Fault::None);
    assert_eq!(image.prepare(&sample), Ok(()));
    image.fault = Fault::RestoreVcpu(0, 1);
    let mut taken = Vec::new();
    assert_eq!(image.restore(1, &mut taken), Err(Problem::Fault(image.fault)));
    assert_eq!(taken, []);
}

#[test]
fn a_vcpu_is_put_back_into_its_own_slot_once() {
    let sample = sample();
    let mut image = Image::beside(&sample, Fault::None);
    assert_eq!(image.adopt(&sample), Ok(()));
    let mut taken = Vec::new();
    assert_eq!(image.restore(1, &mut taken), Ok(()));
    let vcpu = taken.pop().expect("it has two");
    image.with_slots(1, |slots, _| {
        assert_eq!(slots.put_back((2, 1), vcpu.clone()), Err(vcpu.clone()), "another vCPU's slot");
        assert_eq!(slots.put_back((2, 0), vcpu.clone()), Ok(()));
        assert_eq!(slots.put_back((2, 0), vcpu.clone()), Err(vcpu), "it is there already");
    });
}

#[test]
fn problems_are_distinguished() {
    let all = [Mismatch::OtherGuests, Mismatch::OtherConfig, Mismatch::NoPolicy, Mismatch::NoVcpu, Mismatch::NoDevices];
    let texts: std::collections::BTreeSet<String> = all.iter().map(ToString::to_string).collect();
    assert_eq!(texts.len(), all.len());
}
