// SPDX-License-Identifier: MIT OR Apache-2.0
use core::cell::Cell;
use core::cmp::Reverse;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;

#[test]
fn short_lists_are_sorted_whatever_their_order() {
    for numbers in [[1, 2, 3], [1, 3, 2], [2, 1, 3], [2, 3, 1], [3, 1, 2], [3, 2, 1]] {
        for len in 0..=3 {
            let (mut sorted, mut expected) = (numbers, numbers);
            ascending(&mut sorted[..len]);
            expected[..len].sort();
            assert_eq!(sorted, expected);
        }
    }
}

#[test]
fn no_order_takes_more_than_n_log_n_comparisons() {
    let orders: [fn(u32) -> u32; 4] = [|n| n, |n| 1000 - n, |n| n % 7, |_| 0];
    for order in orders {
        let (mut numbers, keys): (Vec<u32>, _) = ((0..1000).map(order).collect(), Cell::new(0));
        by_key(&mut numbers, |number| {
            keys.set(keys.get() + 1);
            *number
        });
        assert!(numbers.is_sorted());
        assert!(keys.get() <= 2 * 2 * 1000 * 10, "{} keys", keys.get());
    }
}

proptest! {
    #[test]
    fn every_element_stays_and_is_in_order(numbers: Vec<(u8, u16)>) {
        let (mut all, mut by_first, mut expected) = (numbers.clone(), numbers.clone(), numbers);
        ascending(&mut all);
        by_key(&mut by_first, |(first, _)| Reverse(*first));
        expected.sort();
        prop_assert_eq!(&all, &expected);
        prop_assert!(by_first.is_sorted_by_key(|(first, _)| Reverse(*first)));
        by_first.sort();
        prop_assert_eq!(by_first, expected);
    }
}
