// SPDX-License-Identifier: MIT OR Apache-2.0
use proptest::prelude::*;

use super::*;

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn arrivals(of: &[(u64, u64)]) -> Arrivals {
    let mut arrivals = Arrivals::default();
    of.iter().for_each(|&(at, number)| arrivals.add(ms(at), number));
    arrivals
}

#[test]
fn the_longest_silence_is_between_two_arrivals() {
    let arrivals = arrivals(&[(10, 0), (11, 1), (19, 2), (20, 3)]);
    assert_eq!(arrivals.longest_silence(ms(10)..ms(20)), ms(8));
}

#[test]
fn a_silence_counts_as_far_as_it_is_in_the_window() {
    let arrivals = arrivals(&[(10, 0), (30, 1), (50, 2)]);
    assert_eq!(arrivals.longest_silence(ms(15)..ms(25)), ms(10));
    assert_eq!(arrivals.longest_silence(ms(25)..ms(33)), ms(5));
    assert_eq!(arrivals.longest_silence(ms(50)..ms(90)), ms(40));
}

#[test]
fn a_window_without_arrivals_is_one_silence() {
    assert_eq!(Arrivals::default().longest_silence(ms(3)..ms(8)), ms(5));
    assert_eq!(Arrivals::default().longest_silence(ms(8)..ms(8)), ms(0));
}

#[test]
fn numbers_that_never_came_are_lost_and_late_ones_are_not() {
    let arrivals = arrivals(&[(1, 5), (2, 9), (3, 7), (4, 12)]);
    assert_eq!(arrivals.lost(), [6..7, 8..9, 10..12]);
    assert_eq!(arrivals.lost_count(), 4);
    assert_eq!(arrivals.repeated(), 0);
}

#[test]
fn a_number_that_comes_twice_is_repeated() {
    let arrivals = arrivals(&[(1, 5), (2, 6), (3, 5), (4, 5)]);
    assert_eq!((arrivals.count(), arrivals.repeated(), arrivals.lost_count()), (4, 2, 0));
}

proptest! {
    #[test]
    fn each_number_arrived_or_is_lost(numbers in prop::collection::btree_set(0_u64..500, 1..60)) {
        let of: Vec<(u64, u64)> = numbers.iter().map(|&number| (number, number)).collect();
        let lost: BTreeSet<u64> = arrivals(&of).lost().into_iter().flatten().collect();
        let (first, last) = (*numbers.first().expect("one"), *numbers.last().expect("one"));
        prop_assert!(lost.is_disjoint(&numbers));
        prop_assert_eq!(lost.len() + numbers.len(), (last - first + 1) as usize);
    }

    #[test]
    fn a_silence_is_no_longer_than_its_window(times in prop::collection::btree_set(0_u64..500, 0..60), from in 0_u64..500, bytes in 0_u64..100) {
        let of: Vec<(u64, u64)> = times.iter().map(|&at| (at, at)).collect();
        prop_assert!(arrivals(&of).longest_silence(ms(from)..ms(from + bytes)) <= ms(bytes));
    }
}
