// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of histograms.

use proptest::prelude::*;

use super::*;

fn counts(buckets: &Buckets) -> Vec<u64> {
    buckets.buckets.iter().map(|(_, count)| *count).collect()
}

#[test]
fn a_duration_is_in_the_first_bucket_that_holds_it() {
    let mut histogram = Histogram::default();
    for ns in [0, 10, 11, 20, 21, u64::MAX] {
        histogram.observe(ns, &[10, 20]);
    }
    let buckets = histogram.buckets(&[10, 20]);
    assert_eq!((counts(&buckets), buckets.count), (vec![2, 2, 2], 6));
    assert_eq!(buckets.buckets[2].0, f64::INFINITY);
    assert_eq!(histogram.sum_ns, u64::MAX, "it does not begin again at zero");
}

#[test]
fn bounds_of_another_release_count_for_the_next_higher_ones() {
    let mut histogram = Histogram::default();
    for ns in [5, 15, 25, 35] {
        histogram.observe(ns, &[10, 20, 30]);
    }
    assert_eq!(counts(&histogram.buckets(&[15, 20])), [1, 1, 2]);
    histogram.observe(12, &[15, 20]);
    assert_eq!(counts(&histogram.buckets(&[15, 20])), [2, 1, 2]);
    assert_eq!(histogram.buckets(&[]).buckets, [(f64::INFINITY, 5)]);
}

proptest! {
    #[test]
    fn it_comes_back_from_json_as_it_was(durations in prop::collection::vec(any::<u64>(), 0..50)) {
        let mut histogram = Histogram::default();
        for ns in durations {
            histogram.observe(ns, &[1 << 20, 1 << 40, 1 << 60]);
        }
        let json = serde_json::to_vec(&histogram).expect("JSON");
        prop_assert_eq!(serde_json::from_slice::<Histogram>(&json).expect("the same"), histogram);
    }
}
