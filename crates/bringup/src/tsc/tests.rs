// SPDX-License-Identifier: MIT OR Apache-2.0
use proptest::prelude::*;

use super::*;

const PROVEN: SyncPlan =
    SyncPlan { mode: Mode::Auto, is_invariant: true, boot_adjust: Some(5), package_shift: 8, shares_cpus: false };

#[test]
fn measuring_is_skipped_only_where_equal_counters_are_proven() {
    assert_eq!(decide(&PROVEN, true, Some(5)), Decision::Skip);
    assert_eq!(decide(&PROVEN, true, Some(6)), Decision::Measure, "one of them has been written to");
    assert_eq!(decide(&PROVEN, false, Some(5)), Decision::Measure, "another package may have been reset later");
    assert_eq!(decide(&PROVEN, true, None), Decision::Measure);
    assert_eq!(decide(&SyncPlan { boot_adjust: None, ..PROVEN }, true, None), Decision::Measure);
    assert_eq!(decide(&SyncPlan { is_invariant: false, ..PROVEN }, true, Some(5)), Decision::Measure);
}

#[test]
fn the_operator_decides_over_the_proof() {
    assert_eq!(decide(&SyncPlan { mode: Mode::Measure, ..PROVEN }, true, Some(5)), Decision::Measure);
    assert_eq!(decide(&SyncPlan { mode: Mode::Skip, ..PROVEN }, false, None), Decision::Skip);
    assert!(!SyncPlan { mode: Mode::Skip, ..PROVEN }.expects_exchanges(false));
    assert!(SyncPlan { mode: Mode::Measure, ..PROVEN }.expects_exchanges(true));
    assert!(!PROVEN.expects_exchanges(true) && PROVEN.expects_exchanges(false));
}

#[test]
fn packages_are_what_the_shift_leaves() {
    assert_eq!((PROVEN.package(0x1ff), PROVEN.package(0xff)), (1, 0));
    assert_eq!(SyncPlan { package_shift: 32, ..PROVEN }.package(u32::MAX), 0, "an absurd shift makes one package");
}

proptest! {
    /// Whatever the way there and back takes, and wherever the counters stand, the truth lies within the stated error.
    #[test]
    fn the_true_offset_lies_within_the_error(
        asked: u64, there in 0u64..1 << 40, back in 0u64..1 << 40, skew in -(1i64 << 50)..1 << 50,
    ) {
        let other = asked.wrapping_add(there).wrapping_add_signed(skew);
        let estimate = Estimate::from_round(asked, other, asked.wrapping_add(there).wrapping_add(back));
        prop_assert!(estimate.offset.abs_diff(skew) <= estimate.error);
    }

    #[test]
    fn no_stamps_whatever_overflow(asked: u64, other: u64, answered: u64) {
        let estimate = Estimate::from_round(asked, other, answered);
        let certain = Estimate { offset: 0, error: 0 };
        prop_assert!(estimate.better_of(certain).is_agreement());
    }
}
