// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of the token bucket.

use proptest::prelude::*;

use super::*;

const NOW: u64 = 7_000_000_000;

#[test]
fn a_full_bucket_lets_a_burst_go_and_then_the_rate() {
    let mut bucket = Bucket::new(100, 4, NOW);
    for _ in 0..4 {
        assert_eq!(bucket.check(NOW), Ok(()));
        bucket.take(1);
    }
    assert_eq!(bucket.check(NOW), Err(NOW + 10_000_000));
    assert_eq!(bucket.check(NOW + 10_000_000), Ok(()));
}

#[test]
fn one_that_is_longer_than_the_bucket_goes_and_is_paid_for() {
    let mut bucket = Bucket::new(1_000, 10, NOW);
    bucket.take(2_020);
    assert_eq!(bucket.check(NOW), Err(NOW + 2_001_000_000));
}

#[test]
fn a_rate_of_nothing_and_of_all_are_bounded() {
    let mut slow = Bucket::new(0, 0, NOW);
    slow.take(u64::MAX);
    assert!(slow.check(u64::MAX).is_err());
    let mut fast = Bucket::new(u64::MAX, u64::MAX, 0);
    fast.take(u64::MAX);
    let _ = fast.check(u64::MAX);
}

proptest! {
    #[test]
    fn a_rate_is_kept_and_reached(
        rate in 1_000u64..2_000_000_000,
        least in 1u64..1_000_000,
        sizes in prop::collection::vec((0u64..66_000, 0u64..50_000_000), 1..200),
    ) {
        let mut bucket = Bucket::new(rate, least, NOW);
        let burst = (rate / 50).max(least);
        let (mut now, mut gone) = (NOW, 0);
        for (amount, pause) in sizes {
            now += pause;
            if let Err(at) = bucket.check(now) {
                prop_assert!(at > now);
                prop_assert!(bucket.check(at - 1).is_err() || at - 1 <= now, "it could have gone earlier");
                now = at;
                prop_assert_eq!(bucket.check(now), Ok(()));
            }
            // One may be in advance.
            let most = u128::from(burst) + u128::from(rate) * u128::from(now - NOW) / 1_000_000_000;
            prop_assert!(gone <= most, "{} of {}", gone, most);
            bucket.take(amount);
            gone += u128::from(amount);
        }
    }
}
