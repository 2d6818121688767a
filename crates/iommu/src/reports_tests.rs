// SPDX-License-Identifier: MIT OR Apache-2.0
//! A storm of refused accesses is reported, at most once in an interval.

use std::vec::Vec;

use pci::Bdf;
use proptest::prelude::*;

use super::{MAX_SOURCES, Report, Reports};
use crate::{Access, Fault, FaultReason};

fn fault(requester: u16, address: u64) -> Fault {
    let source = Bdf::of_requester(0, requester);
    Fault { source, address, access: Access::Write, reason: FaultReason::NotMapped }
}

#[test]
fn the_first_is_reported_at_once_and_the_rest_by_their_number() {
    let mut reports = Reports::new(100);
    assert_eq!(reports.note(fault(8, 0x1000), 5), Some(Report { first: fault(8, 0x1000), refused: 1 }));
    assert_eq!(reports.note(fault(9, 0x1000), 5).map(|report| report.refused), Some(1), "another function's first");
    for now in 6..105 {
        assert_eq!(reports.note(fault(8, now << 12), now), None);
        assert_eq!(reports.next_due(now), None);
    }
    assert_eq!(reports.next_due(105), Some(Report { first: fault(8, 6 << 12), refused: 99 }));
    assert_eq!(reports.next_due(105), None);
    assert_eq!(reports.note(fault(8, 0), 300).map(|report| report.refused), Some(1), "it was quiet for a while");
}

proptest! {
    #[test]
    fn every_access_is_counted_once(storm in prop::collection::vec((0..8u16, 0..50u64), 1..300)) {
        let mut reports = Reports::new(100);
        let (mut now, mut reported) = (0, 0);
        let mut times: Vec<(Bdf, u64)> = Vec::new();
        for (requester, pause) in &storm {
            now += pause;
            let noted = reports.note(fault(*requester, now), now);
            let due = std::iter::from_fn(|| reports.next_due(now));
            for report in noted.into_iter().chain(due.collect::<Vec<_>>()) {
                reported += report.refused;
                let place = report.first.source;
                prop_assert!(times.iter().all(|(other, at)| *other != place || now - at >= 100));
                times.push((place, now));
            }
        }
        reported += std::iter::from_fn(|| reports.next_due(now + 100)).map(|report| report.refused).sum::<u64>();
        prop_assert_eq!(reported, storm.len() as u64);
    }

    #[test]
    fn more_functions_than_there_are_slots_for_are_reported_too(count in 1..200u16) {
        let mut reports = Reports::new(1000);
        let due = (0..count).filter(|id| reports.note(fault(*id, 0), 1 + u64::from(*id)).is_some());
        prop_assert_eq!(due.count(), usize::from(count));
        prop_assert!(reports.sources.len() <= MAX_SOURCES);
    }
}
