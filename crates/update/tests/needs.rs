// SPDX-License-Identifier: MIT OR Apache-2.0
//! The checks before anything stops.

use update::needs::{Needs, common_trial_version, mailboxes, will_fit};
use update::trial::VERSION;

#[test]
fn staging_memory_grows_with_all_that_the_new_image_makes() {
    let needs = Needs { heap_bytes: 8 << 20, cpus: 4, guests: 2, vcpus: 6 };
    assert_eq!(needs.staging_bytes(), (8 << 20) + (2 << 20) + 4 * (128 << 10) + 6 * (32 << 10) + 2 * (64 << 10));
}

#[test]
fn there_is_a_mailbox_for_each_number_up_to_the_highest() {
    assert_eq!([mailboxes([0].into_iter()), mailboxes([0, 5, 2].into_iter()), mailboxes([].into_iter())], [1, 6, 1]);
}

#[test]
fn a_hand_over_block_must_fit_with_what_it_may_grow_by() {
    assert!(will_fit(90, 10, 100) && !will_fit(91, 10, 100));
    assert!(!will_fit(usize::MAX, 1, usize::MAX - 1));
}

#[test]
fn images_meet_in_the_newest_version_that_both_know() {
    assert_eq!([common_trial_version(1), common_trial_version(VERSION + 1)], [1, VERSION]);
}
