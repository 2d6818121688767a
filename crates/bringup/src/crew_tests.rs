// SPDX-License-Identifier: MIT OR Apache-2.0
use std::string::ToString;

use super::*;
use crate::startup::{Limits, Reach};
use crate::tsc::{Mode, SyncPlan};

fn plan(policy: Policy) -> Plan {
    let sync =
        SyncPlan { mode: Mode::Auto, is_invariant: true, boot_adjust: Some(0), package_shift: 4, shares_cpus: false };
    Plan { policy, reach: Reach::Each, startup_page: 8, limits: Limits::new(1000, 0), sync, reset_at: None }
}

/// Three CPUs with the APIC identifiers 0, 2 and 17, the last in a package of its own.
pub(crate) fn crew<'a>(cells: &'a [CpuCell], groups: &'a [Group], shared: &'a Shared) -> Crew<'a> {
    Crew::new(&[0, 2, 17], cells, groups, shared, plan(Policy::Parallel)).unwrap()
}

/// Two CPUs, one after the other, clocks proven equal.
pub(crate) fn serial_pair<'a>(cells: &'a [CpuCell], groups: &'a [Group], shared: &'a Shared) -> Crew<'a> {
    Crew::new(&[0, 1], cells, groups, shared, plan(Policy::Serial)).unwrap()
}

/// Two CPUs, the second parked, clocks proven equal.
pub(crate) fn parked_pair<'a>(cells: &'a [CpuCell], groups: &'a [Group], shared: &'a Shared) -> Crew<'a> {
    Crew::new(&[0, 1], cells, groups, shared, plan(Policy::Park)).unwrap()
}

#[test]
fn tables_that_are_too_small_are_refused() {
    loom::model(|| {
        let (cells, groups, shared) = ([CpuCell::new(), CpuCell::new()], [Group::new()], Shared::new());
        let crew = |ids, groups| Crew::new(ids, &cells, groups, &shared, plan(Policy::Serial)).map(|_| ());
        assert_eq!(crew(&[], &groups), Err(CrewError::Empty));
        assert_eq!(crew(&[0, 1, 2], &groups), Err(CrewError::TooFewCells { cpus: 3, cells: 2 }));
        assert_eq!(crew(&[0, 1], &[]), Err(CrewError::TooFewGroups { cpus: 2, groups: 0 }));
        assert_eq!(crew(&[0, 1], &groups), Ok(()));
    });
    let text = CrewError::TooFewCells { cpus: 3, cells: 2 }.to_string();
    assert_eq!(text, "3 CPUs, but cells for 2: use fewer (option cpus=)");
}

#[test]
fn cpus_are_found_by_identifier_and_grouped_by_package() {
    loom::model(|| {
        let (cells, groups, shared) = ([CpuCell::new(), CpuCell::new(), CpuCell::new()], [Group::new()], Shared::new());
        let crew = crew(&cells, &groups, &shared);
        assert_eq!((crew.index_of(17), crew.index_of(3)), (Some(2), None));
        assert!(crew.is_in_boot_package(1) && !crew.is_in_boot_package(2));
        assert!(crew.stays_to_answer(), "the second package must be measured");
        assert_eq!(crew.state(99), State::Offline);
    });
}

#[test]
fn only_the_serial_policy_waits_for_each() {
    assert_eq!([Policy::Serial, Policy::Parallel, Policy::Park].map(|policy| policy.batch(128)), [1, 128, 128]);
}
