// SPDX-License-Identifier: MIT OR Apache-2.0
//! The next image is staged in a simulated host of two CPUs: each step fails once, and the other CPU interferes before
//! each of them.

mod host;

use host::{CHECKED, Config, EARLY, Fault, POLICIES, Step, UNCHECKED, stage};

/// Every step that some configuration takes, and that can fail.
const FALLIBLE: [Step; 14] = [
    Step::Describe,
    Step::Admit,
    Step::Seal,
    Step::Allocate,
    Step::Lock,
    Step::CheckGuests,
    Step::Judge,
    Step::Version,
    Step::Record,
    Step::StagingMemory,
    Step::Files,
    Step::Pack,
    Step::SwitchPages,
    Step::Write,
];

fn configs() -> impl Iterator<Item = Config> {
    POLICIES.into_iter().flat_map(|policy| [false, true].map(|is_update| Config { policy, is_update }))
}

fn expected(config: Config) -> Vec<Step> {
    let is = |is: bool, steps: &[Step]| if is { steps.to_vec() } else { Vec::new() };
    let Config { policy, is_update } = config;
    [
        vec![Step::Describe, Step::Admit, Step::Seal, Step::Allocate, Step::Copy, Step::Copy, Step::Copy],
        vec![if policy.is_locked { Step::Lock } else { Step::LeaveOpen }],
        is(policy.is_checked, &[Step::Hash, Step::Hash, Step::Hash]),
        vec![Step::CheckGuests, if policy.is_checked { Step::Judge } else { Step::TrustUnchecked }],
        vec![Step::Version, Step::Record],
        is(is_update, &[Step::StagingMemory, Step::Files]),
        vec![Step::Pack, Step::Assemble, Step::SwitchPages, Step::Write, Step::Map],
    ]
    .concat()
}

#[test]
fn each_step_comes_once_and_in_order() {
    for config in configs() {
        let outcome = stage(config, Fault::None);
        let staged = outcome.result.expect("nothing fails");
        assert_eq!(outcome.steps, expected(config), "{config:?}");
        assert_eq!(staged.has_update_goods, config.is_update);
        assert_eq!(staged.packed_for, staged.version);
        assert!(staged.is_as_sealed);
    }
}

#[test]
fn nothing_is_done_after_the_first_step_that_fails_and_all_is_given_back() {
    for (config, step) in
        configs().flat_map(|config| FALLIBLE.into_iter().chain([Step::Map]).map(move |at| (config, at)))
    {
        let outcome = stage(config, Fault::Fails(step));
        let all = expected(config);
        let may_lack = step == Step::Seal && !config.policy.is_checked;
        match all.iter().position(|taken| *taken == step).filter(|_| !may_lack) {
            Some(at) => {
                assert_eq!(outcome.result, Err(step), "{config:?}");
                assert_eq!(outcome.steps, all[..=at], "{config:?}");
                assert_eq!(outcome.kept, 0, "{config:?}: {step:?}");
            }
            None => assert!(outcome.result.is_ok(), "{config:?}: {step:?} is not taken"),
        }
        assert!(outcome.has_file, "{config:?}: the file is gone after {step:?}");
    }
}

#[test]
fn a_hand_over_block_without_room_to_grow_is_refused() {
    for config in configs() {
        assert!(stage(config, Fault::RecordOf(host::LARGEST_RECORD)).result.is_ok());
        let outcome = stage(config, Fault::RecordOf(host::LARGEST_RECORD + 1));
        assert_eq!((outcome.result, outcome.kept, outcome.has_file), (Err(Step::Measured), 0, true));
        assert_eq!(outcome.steps.last(), Some(&Step::Write));
    }
}

#[test]
fn a_locked_image_that_may_run_is_the_one_that_was_sealed_whenever_the_other_cpu_writes_to_it() {
    for is_update in [false, true] {
        let config = Config { policy: EARLY, is_update };
        let steps = expected(config);
        let mut refused = 0;
        for (before, step) in steps.iter().enumerate() {
            match stage(config, Fault::StrayWrite { before }).result {
                Ok(staged) => assert!(staged.is_as_sealed, "a write before {step:?}"),
                Err(refusal) => {
                    assert_eq!(refusal, Step::Judge);
                    refused += 1;
                }
            }
        }
        assert_eq!(refused, 3, "only between the first slice's copy and the lock");
    }
}

/// Without the lock a later write goes unnoticed: that is why the leader checks again in the blackout.
#[test]
fn an_open_image_may_change_after_it_was_hashed() {
    let config = Config { policy: CHECKED, is_update: false };
    let outcome = stage(config, Fault::StrayWrite { before: expected(config).len() - 1 });
    assert!(!outcome.result.expect("it is not noticed").is_as_sealed);
}

#[test]
fn an_image_without_a_seal_runs_only_where_none_is_demanded() {
    assert!(stage(Config { policy: UNCHECKED, is_update: false }, Fault::Fails(Step::Seal)).result.is_ok());
    for policy in [CHECKED, EARLY] {
        let outcome = stage(Config { policy, is_update: false }, Fault::Fails(Step::Seal));
        assert_eq!(outcome.result, Err(Step::Seal));
    }
}

#[test]
fn an_unchecked_image_without_a_seal_has_nothing_to_hash() {
    let hashed = |policy, fault| stage(Config { policy, is_update: false }, fault).sealed_bytes;
    assert_eq!(hashed(UNCHECKED, Fault::Fails(Step::Seal)), Some(0));
    assert_eq!(hashed(CHECKED, Fault::None), Some(host::SEALED_BYTES));
}
