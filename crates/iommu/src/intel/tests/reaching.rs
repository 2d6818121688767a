// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory that functions reach.

use std::vec;

use units::{GIB, MIB, PageSize};

use super::setup::*;
use crate::domain::{Domain, DomainId};
use crate::intel::model::{Features, Machine, Probe};
use crate::problem::Problem;

#[test]
fn an_attached_function_reaches_its_domain_with_its_rights_until_it_is_blocked() {
    let machine = machine();
    let mut unit = started(&machine);
    let mut domain = domain(&machine, &unit, 5);
    let source = function(3, 1);
    unit.attach(&mut machine.clone(), source, &domain).unwrap();
    map(&machine, &mut unit, &mut domain, (0x20_0000, 4 * GIB), 2 * MIB, false).unwrap();
    map(&machine, &mut unit, &mut domain, (0x40_0000, 0x7000), 0x1000, true).unwrap();
    assert_eq!(unit.domain_of(&machine, source), Some(DomainId(5)));
    assert_eq!(machine.access(0x308, 0x20_1234, false), Ok(4 * GIB + 0x1234));
    assert_eq!(machine.access(0x308, 0x20_1234, true), Err(5));
    assert_eq!(machine.access(0x308, 0x40_0123, true), Ok(0x7123));
    unmap(&machine, &mut unit, &mut domain, 0x20_0000, 0x1000, true).unwrap();
    assert_eq!(machine.access(0x308, 0x20_0000, false), Err(6));
    assert_eq!(machine.access(0x308, 0x20_1234, false), Ok(4 * GIB + 0x1234));
    unit.block(&mut machine.clone(), source).unwrap();
    assert_eq!(machine.access(0x308, 0x40_0123, false), Err(2));
    assert_eq!(unit.domain_of(&machine, source), None);
}

#[test]
fn a_context_entry_is_never_half_written() {
    let machine = machine();
    let mut unit = started(&machine);
    let (first, second) = (one_page(&machine, 1), one_page(&machine, 2));
    let may_reach = vec![None, Some(0x9000)];
    machine.set_probes(vec![Probe { requester: 0x308, address: 0x5000, may_reach }]);
    for domain in [&first, &second, &first] {
        unit.attach(&mut machine.clone(), function(3, 1), domain).unwrap();
        assert_eq!(machine.access(0x308, 0x5000, true), Ok(0x9000));
    }
}

#[test]
fn accesses_have_ended_when_memory_is_taken_away() {
    let machine = machine();
    let mut unit = started(&machine);
    let mut domain = domain(&machine, &unit, 5);
    unit.attach(&mut machine.clone(), function(3, 1), &domain).unwrap();
    for by_range in [false, true] {
        map(&machine, &mut unit, &mut domain, (0x5000, 0x9000), 0x1000, true).unwrap();
        machine.access(0x308, 0x5000, true).unwrap();
        assert!(machine.unit(|unit| unit.under_way.contains(&5)));
        unmap(&machine, &mut unit, &mut domain, 0x5000, 0x1000, by_range).unwrap();
        assert!(machine.unit(|unit| unit.under_way.is_empty()));
    }
    map(&machine, &mut unit, &mut domain, (0x5000, 0x9000), 0x1000, true).unwrap();
    machine.access(0x308, 0x5000, true).unwrap();
    unit.block(&mut machine.clone(), function(3, 1)).unwrap();
    assert!(machine.unit(|unit| unit.under_way.is_empty()));
    assert!(started(&machine).domain_of(&machine, function(3, 1)).is_none());
    assert!(machine.unit(|unit| unit.under_way.is_empty()));
}

#[test]
fn a_function_attached_to_another_domain_reaches_that_one_alone() {
    let machine = machine();
    let mut unit = started(&machine);
    let (mut first, mut second) = (domain(&machine, &unit, 1), domain(&machine, &unit, 2));
    map(&machine, &mut unit, &mut first, (0x1000, 0x5000), 0x1000, true).unwrap();
    map(&machine, &mut unit, &mut second, (0x2000, 0x6000), 0x1000, true).unwrap();
    for (domain, reached) in [(&first, [Ok(0x5000), Err(6)]), (&second, [Err(6), Ok(0x6000)])] {
        unit.attach(&mut machine.clone(), function(0, 2), domain).unwrap();
        assert_eq!([0x1000, 0x2000].map(|address| machine.access(0x10, address, false)), reached);
    }
}

#[test]
fn a_number_that_another_domain_had_brings_nothing_of_it() {
    let machine = machine();
    let mut unit = started(&machine);
    let former = one_page(&machine, 3);
    unit.attach(&mut machine.clone(), function(0, 2), &former).unwrap();
    assert_eq!(machine.access(0x10, 0x5000, false), Ok(0x9000));
    unit.block(&mut machine.clone(), function(0, 2)).unwrap();
    former.free(&mut machine.clone());
    let next = domain(&machine, &unit, 3);
    unit.attach(&mut machine.clone(), function(0, 2), &next).unwrap();
    assert_eq!(machine.access(0x10, 0x5000, false), Err(6));
}

#[test]
fn three_levels_translate_their_addresses_and_keep_their_top_table() {
    let machine = Machine::new(Features { has_four_levels: false, ..Features::default() });
    let mut unit = started(&machine);
    assert_eq!(unit.address_limit(), 511 * GIB);
    let mut domain = domain(&machine, &unit, 1);
    unit.attach(&mut machine.clone(), function(0, 2), &domain).unwrap();
    for address in [0, 510 * GIB] {
        map(&machine, &mut unit, &mut domain, (address, GIB), GIB, true).unwrap();
        assert_eq!(machine.access(0x10, address + 0x123, true), Ok(GIB + 0x123));
        unmap(&machine, &mut unit, &mut domain, address, GIB, false).unwrap();
        assert_eq!(machine.access(0x10, address, false), Err(6));
    }
    assert!(map(&machine, &mut unit, &mut domain, (511 * GIB, 0), 0x1000, true).is_err());
    assert_eq!(machine.access(0x10, 512 * GIB, false), Err(4));
}

#[test]
fn a_domain_that_the_unit_cannot_translate_is_refused() {
    let small = Features { has_four_levels: false, has_large_pages: false, ..Features::default() };
    let machine = Machine::new(small);
    let mut unit = started(&machine);
    let mut memory = machine.clone();
    let mut attach = |id: u16, limit, largest| {
        let domain = Domain::new(DomainId(id), &mut machine.clone(), largest).unwrap().with_limit(limit);
        unit.attach(&mut memory, function(0, 2), &domain)
    };
    assert!(matches!(attach(0, GIB, PageSize::Kib4), Err(Problem::Lacks { .. })));
    assert!(matches!(attach(256, GIB, PageSize::Kib4), Err(Problem::Lacks { .. })));
    assert!(matches!(attach(1, 512 * GIB, PageSize::Kib4), Err(Problem::Lacks { .. })));
    assert!(matches!(attach(1, GIB, PageSize::Mib2), Err(Problem::Lacks { .. })));
    assert_eq!(attach(255, GIB, PageSize::Kib4), Ok(()));
}
