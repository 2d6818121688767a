// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of the limit on refusals.

use proptest::prelude::*;

use crate::Quota;

#[test]
fn a_few_refusals_come_at_once_and_then_one_for_each_interval() {
    let mut quota = Quota::new();
    assert!((0..16).all(|_| quota.take(1_000, 100) == Some(0)));
    assert_eq!([quota.take(1_050, 100), quota.take(1_099, 100)], [None, None]);
    assert_eq!(quota.take(1_100, 100), Some(2), "what was left out is counted");
    assert_eq!(quota.take(1_101, 100), None);
    assert_eq!(quota.take(1_200, 100), Some(1));
}

proptest! {
    #[test]
    fn no_time_has_more_refusals_than_the_first_few_and_one_for_each_interval(
        steps in prop::collection::vec(0..300u64, 1..300), interval in 0..200u64, start: u32,
    ) {
        let (mut quota, mut now, mut taken, mut left_out) = (Quota::new(), u64::from(start), 0, 0);
        let mut reported = 0;
        quota.take(now, interval);
        for step in steps {
            now += step;
            match quota.take(now, interval) {
                Some(count) => (taken, reported) = (taken + 1, reported + u64::from(count)),
                None => left_out += 1,
            }
        }
        prop_assert!(taken <= 15 + (now - u64::from(start)) / interval.max(1));
        prop_assert!(reported <= left_out);
    }
}
