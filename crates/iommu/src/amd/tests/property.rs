// SPDX-License-Identifier: MIT OR Apache-2.0
//! After any order of requests a device reaches exactly what its domain maps, and sends exactly the opened interrupts.

use std::collections::BTreeMap;
use std::vec::Vec;

use paging::PhysAddr;
use proptest::prelude::*;

use super::super::{AmdFormat, Unit};
use super::hardware::{ALL_FEATURES, Machine};
use super::operation::{HIGHEST, domain, function, started};
use crate::{Domain, Interrupt};

const FUNCTIONS: [u16; 3] = [8, 9, 0x3f8];
const SLOTS: u64 = 4;
/// Pages lie around the boundary between two of the lowest tables.
const FIRST: u64 = 0x1f_e000;

#[derive(Clone, Copy, Debug)]
enum Step {
    Attach(usize, usize),
    Map(usize, u64, bool),
    Unmap(usize, u64),
    Block(usize),
    Open(usize),
    Send(usize, u16, Option<u8>),
    Update,
}

fn step() -> impl Strategy<Value = Step> {
    let function = 0..FUNCTIONS.len();
    let slot = 0..SLOTS;
    prop_oneof![
        (function.clone(), 0..2usize).prop_map(|(function, domain)| Step::Attach(function, domain)),
        (0..2usize, slot.clone(), any::<bool>()).prop_map(|(domain, slot, write)| Step::Map(domain, slot, write)),
        (0..2usize, slot).prop_map(|(domain, slot)| Step::Unmap(domain, slot)),
        function.clone().prop_map(Step::Block),
        function.clone().prop_map(Step::Open),
        (function, 0..4u16, any::<Option<u8>>()).prop_map(|(function, at, vector)| Step::Send(function, at, vector)),
        Just(Step::Update),
    ]
}

/// The access that was granted.
#[derive(Default)]
struct Granted {
    attached: BTreeMap<usize, usize>,
    pages: BTreeMap<(usize, u64), bool>,
    opened: BTreeMap<usize, [Option<u8>; 4]>,
}

struct World {
    machine: Machine,
    unit: Unit,
    domains: Vec<Domain<AmdFormat>>,
    granted: Granted,
}

fn physical(domain: usize, slot: u64) -> u64 {
    (1 << 32) + (domain as u64 * 16 + slot) * 4096
}

impl World {
    fn carry_out(&mut self, step: Step) {
        let (mut registers, mut memory) = self.machine.sides();
        let Self { unit, domains, granted, .. } = self;
        match step {
            Step::Attach(at, domain) => {
                unit.attach(&mut registers, &mut memory, function(FUNCTIONS[at]), &domains[domain]).unwrap();
                granted.attached.insert(at, domain);
            }
            Step::Map(domain, slot, write) if !granted.pages.contains_key(&(domain, slot)) => {
                let (address, phys) = (FIRST + slot * 4096, PhysAddr(physical(domain, slot)));
                domains[domain].map(&mut memory, address, phys, 4096, write).unwrap();
                unit.invalidate_range(&mut registers, &mut memory, domains[domain].id(), address, 4096).unwrap();
                granted.pages.insert((domain, slot), write);
            }
            Step::Unmap(domain, slot) if granted.pages.remove(&(domain, slot)).is_some() => {
                let address = FIRST + slot * 4096;
                domains[domain].unmap(&mut memory, address, 4096).unwrap();
                unit.invalidate_range(&mut registers, &mut memory, domains[domain].id(), address, 4096).unwrap();
            }
            Step::Block(at) => {
                unit.block(&mut registers, &mut memory, function(FUNCTIONS[at])).unwrap();
                granted.attached.remove(&at);
                granted.opened.remove(&at);
            }
            Step::Open(at) => {
                unit.open_interrupts(&mut registers, &mut memory, function(FUNCTIONS[at]), 4).unwrap();
                granted.opened.insert(at, [None; 4]);
            }
            Step::Send(at, index, vector) => {
                let interrupt = vector.map(|vector| Interrupt { vector, destination: 3, is_level: false });
                let source = function(FUNCTIONS[at]);
                let sent = unit.set_interrupt(&mut registers, &mut memory, source, index, interrupt);
                assert_eq!(sent.is_ok(), granted.opened.contains_key(&at));
                if let Some(opened) = granted.opened.get_mut(&at) {
                    opened[usize::from(index)] = vector;
                }
            }
            Step::Update => {
                *unit = Unit::adopt(&mut registers, &memory, (0, HIGHEST), |_, _| true).unwrap();
            }
            Step::Map(..) | Step::Unmap(..) => {}
        }
    }

    fn check(&self) {
        for (at, requester) in FUNCTIONS.into_iter().enumerate() {
            let attached = self.granted.attached.get(&at);
            for (slot, is_write) in (0..SLOTS).flat_map(|slot| [(slot, false), (slot, true)]) {
                let page = attached.and_then(|domain| Some((*domain, *self.granted.pages.get(&(*domain, slot))?)));
                let expected = page.filter(|(_, write)| *write || !is_write).map(|(domain, _)| physical(domain, slot));
                let reached = self.machine.0.borrow_mut().reach(requester, FIRST + slot * 4096, is_write).ok();
                assert_eq!(reached, expected, "{requester:#x}, page {slot}, write {is_write}");
            }
            for index in 0..5 {
                let opened = self.granted.opened.get(&at).and_then(|opened| *opened.get(index as usize)?);
                let sent = self.machine.0.borrow_mut().interrupt(requester, index).ok();
                assert_eq!(sent, opened.map(|vector| (vector, 3)));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_device_reaches_and_sends_what_was_granted(
        features in prop_oneof![Just(1 << 6), Just(1 << 6 | 1 << 7), Just(ALL_FEATURES)],
        steps in prop::collection::vec(step(), 1..40),
    ) {
        let (machine, unit) = started(features);
        let domains = (1..=2).map(|id| domain(&machine, id)).collect();
        let mut world = World { machine, unit, domains, granted: Granted::default() };
        for step in steps {
            world.carry_out(step);
            world.check();
        }
    }
}
