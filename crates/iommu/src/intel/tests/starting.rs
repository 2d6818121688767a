// SPDX-License-Identifier: MIT OR Apache-2.0
//! Taking a unit over, and leaving it.

use std::vec;

use super::setup::*;
use crate::intel::model::{Features, Machine, Probe};
use crate::intel::{Place, Unit};
use crate::problem::Problem;

#[test]
fn from_reset_every_function_is_blocked_but_those_with_reserved_regions() {
    let machine = machine();
    let (source, domain) = (function(3, 1), one_page(&machine, 1));
    assert_eq!(machine.access(0x42, 0x1234, true), Ok(0x1234));
    let _unit = take_over(&machine, &[(source, &domain)]).unwrap();
    assert_eq!(machine.access(source.requester(), 0x5678, true), Ok(0x9678));
    assert_eq!(machine.access(source.requester(), 0x6000, false), Err(6));
    for requester in [0, 0x42, 0x300, 0xffff] {
        assert!(machine.access(requester, 0x5678, false).is_err());
    }
}

#[test]
fn a_unit_that_translates_is_taken_over_without_a_window() {
    let machine = machine();
    let (source, other) = (function(3, 1), function(4, 0));
    let mut former = started(&machine);
    let before = one_page(&machine, 7);
    former.attach(&mut machine.clone(), source, &before).unwrap();
    former.attach(&mut machine.clone(), other, &before).unwrap();
    former.remap_interrupts(&mut machine.clone(), true).unwrap();
    // The function of which firmware claims a region reaches it all the time; the other, as before or nothing.
    let mut after = domain(&machine, &former, 1);
    map(&machine, &mut former, &mut after, (0x5000, 0x9000), 0x1000, true).unwrap();
    let probe = |requester, may_reach| Probe { requester, address: 0x5000, may_reach };
    machine.set_probes(vec![
        probe(source.requester(), vec![Some(0x9000)]),
        probe(other.requester(), vec![Some(0x9000), None]),
        probe(0x1234, vec![None]),
    ]);
    machine.unit(|unit| {
        unit.event_controls = [0; 2];
        unit.status |= 1 << 28;
    });
    let _unit = take_over(&machine, &[(source, &after)]).unwrap();
    assert_eq!(machine.access(source.requester(), 0x5000, true), Ok(0x9000));
    assert!(machine.access(other.requester(), 0x5000, true).is_err());
    machine.unit(|unit| {
        assert_eq!(unit.windows, 0);
        assert_eq!(unit.event_controls, [1 << 31; 2]);
        assert_eq!(unit.status & (1 << 28 | 1 << 25), 0, "the former's log and interrupts are disabled");
    });
}

#[test]
fn nothing_is_left_of_a_former_domain_with_the_same_number() {
    let machine = machine();
    let source = function(3, 1);
    let mut former = started(&machine);
    let mut before = domain(&machine, &former, 1);
    map(&machine, &mut former, &mut before, (0x5000, 0x9000), 0x2000, true).unwrap();
    former.attach(&mut machine.clone(), source, &before).unwrap();
    assert_eq!(machine.access(0x308, 0x6000, true), Ok(0xa000));
    let after = one_page(&machine, 1);
    let _unit = take_over(&machine, &[(source, &after)]).unwrap();
    assert_eq!(machine.access(0x308, 0x5000, true), Ok(0x9000));
    assert_eq!(machine.access(0x308, 0x6000, true), Err(5));
}

#[test]
fn a_unit_in_scalable_mode_is_taken_over_while_protected_regions_cover_memory() {
    for has_protected_memory in [false, true] {
        let machine = Machine::new(Features { has_protected_memory, ..Features::default() });
        drop(started(&machine));
        machine.unit(|unit| {
            unit.root |= 1 << 10;
            unit.set_root_in_use();
        });
        let domain = one_page(&machine, 1);
        let reserved = [(function(3, 1), &domain)];
        let may_reach = vec![None, Some(0x9000)];
        machine.set_probes(vec![Probe { requester: 0x308, address: 0x5000, may_reach }]);
        let taken = take_over(&machine, &reserved).map(|_| ());
        assert_eq!(machine.unit(|unit| unit.windows), 0);
        match has_protected_memory {
            true => assert_eq!((taken, machine.access(0x308, 0x5000, true)), (Ok(()), Ok(0x9000))),
            false => assert!(matches!(taken, Err(Problem::Lacks { .. }))),
        }
    }
}

#[test]
fn protected_regions_are_disabled_once_translation_is_on() {
    let machine = machine();
    machine.unit(|unit| unit.protected = 1 << 31 | 1);
    machine.set_probes(vec![Probe { requester: 0x42, address: 0x5000, may_reach: vec![None] }]);
    let _unit = started(&machine);
    assert_eq!(machine.unit(|unit| unit.protected), 0);
}

#[test]
fn leaving_disables_everything_and_gives_all_memory_back() {
    let machine = machine();
    let mut unit = started(&machine);
    let domain = one_page(&machine, 1);
    unit.attach(&mut machine.clone(), function(3, 1), &domain).unwrap();
    unit.remap_interrupts(&mut machine.clone(), false).unwrap();
    unit.leave(&mut machine.clone()).unwrap();
    domain.free(&mut machine.clone());
    assert_eq!(machine.unit(|unit| unit.status & (1 << 31 | 1 << 26 | 1 << 25)), 0);
    assert_eq!(machine.ram(|ram| ram.in_use()), 0);
    let _again = started(&machine);
}

#[test]
fn without_memory_a_unit_is_refused_and_stays_as_it_was() {
    for budget in 0..3 {
        let machine = machine();
        let domain = one_page(&machine, 1);
        machine.ram(|ram| ram.budget = budget);
        let taken = take_over(&machine, &[(function(3, 1), &domain)]);
        assert_eq!(taken.map(|_| ()), Err(Problem::OutOfMemory));
        assert_eq!(machine.unit(|unit| unit.writes), 0);
        assert_eq!(machine.ram(|ram| ram.budget), budget);
    }
}

#[test]
fn what_a_unit_lacks_is_named() {
    let refused = |change: fn(&mut crate::intel::model::Hardware)| {
        let machine = machine();
        machine.unit(change);
        let taken = take_over(&machine, &[]).map(|_| ());
        assert_eq!(machine.unit(|unit| unit.writes), 0);
        assert_eq!(machine.ram(|ram| ram.in_use()), 0);
        taken.unwrap_err()
    };
    assert!(matches!(refused(|unit| unit.extended &= !2), Problem::Lacks { feature } if feature.contains("QI")));
    assert!(
        matches!(refused(|unit| unit.capability &= !(0x1f << 8)), Problem::Lacks { feature } if feature.contains("SAGAW"))
    );
    assert!(matches!(refused(|unit| unit.capability |= 7), Problem::Absurd { register: "CAP", .. }));
    assert!(matches!(refused(|unit| unit.capability |= 0x3ff << 24), Problem::Absurd { register: "CAP", .. }));
    assert!(matches!(refused(|unit| unit.extended = u64::MAX), Problem::Absurd { register: "ECAP", .. }));
    assert!(matches!(refused(|unit| unit.is_gone = true), Problem::Absurd { register: "VER", .. }));
}

#[test]
fn a_function_of_another_segment_is_refused() {
    let machine = machine();
    let (source, domain) = (function(3, 1), one_page(&machine, 1));
    let place = Place { segment: 1, ..PLACE };
    let taken = Unit::take_over(machine.clone(), &mut machine.clone(), place, &[(source, &domain)]);
    assert_eq!(taken.map(|_| ()), Err(Problem::NotHere { source }));
    let mut unit = Unit::take_over(machine.clone(), &mut machine.clone(), place, &[]).unwrap();
    assert_eq!(unit.attach(&mut machine.clone(), source, &domain), Err(Problem::NotHere { source }));
    assert_eq!(unit.block(&mut machine.clone(), source), Err(Problem::NotHere { source }));
}
