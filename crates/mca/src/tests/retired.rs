// SPDX-License-Identifier: MIT OR Apache-2.0
use std::vec::Vec;

use units::{PhysAddr, PhysRange};

use crate::Retired;

fn page(number: u64) -> PhysRange {
    PhysRange::from_start(PhysAddr(number << 12), 4096).expect("in physical memory")
}

#[test]
fn what_was_retired_is_listed_in_its_order() {
    let list = Retired::<4>::new();
    assert_eq!((list.count(), list.iter().next()), (0, None));
    assert!(list.add(page(7)) && list.add(page(0)));
    assert_eq!((list.count(), list.iter().collect::<Vec<_>>()), (2, [page(7), page(0)].into()));
}

#[test]
fn a_full_list_reports_what_it_does_not_take() {
    let list = Retired::<2>::new();
    assert!(list.add(page(1)) && list.add(page(2)) && !list.add(page(3)));
    assert_eq!((list.count(), list.iter().collect::<Vec<_>>()), (2, [page(1), page(2)].into()));
}

#[test]
fn cpus_add_at_the_same_time_and_none_loses_its_range() {
    let list = Retired::<64>::new();
    std::thread::scope(|scope| {
        for cpu in 0..8 {
            let list = &list;
            scope.spawn(move || (0..8).for_each(|n| assert!(list.add(page(cpu * 8 + n + 1)))));
        }
    });
    let mut found: Vec<_> = list.iter().collect();
    found.sort_by_key(|range| range.start());
    assert_eq!(found, (1..=64).map(page).collect::<Vec<_>>());
}
