// SPDX-License-Identifier: MIT OR Apache-2.0
//! After any order of requests, a function reaches what its domain maps and sends what was opened, on every kind of
//! unit. The functions try everything after each request, so that the unit has cached all that it may.

use std::collections::BTreeMap;
use std::vec::Vec;

use proptest::prelude::*;

use super::setup::*;
use crate::domain::Domain;
use crate::intel::model::{Features, Machine, is_of_a_wrong_table};
use crate::intel::{SecondStage, Unit};
use crate::interrupt::Interrupt;

const PAGE: u64 = 0x1000;
const LARGE: u64 = 0x20_0000;
/// Addresses at which domains are mapped, and the probes in each place.
const PLACES: [u64; 4] = [0, LARGE - 2 * PAGE, 64 * LARGE, 0x40_0000_0000];
const FUNCTIONS: [(u8, u8); 3] = [(0, 2), (0, 3), (7, 0)];

#[derive(Clone, Copy, Debug)]
enum Request {
    Attach(usize, usize),
    Block(usize),
    Map { domain: usize, place: usize, skip: u64, pages: u64, is_writable: bool },
    Unmap { domain: usize, place: usize, skip: u64, pages: u64, by_range: bool },
    Replace(usize),
    Open(usize, u16),
    Set(usize, u16, Option<u8>),
    Close(usize),
    Update,
}

fn request() -> impl Strategy<Value = Request> {
    let pages = prop_oneof![4 => 1u64..4, 2 => Just(512u64), 1 => Just(1024u64)];
    prop_oneof![
        4 => (0..3usize, 0..2usize).prop_map(|(function, domain)| Request::Attach(function, domain)),
        2 => (0..3usize).prop_map(Request::Block),
        6 => (0..2usize, 0..4usize, 0u64..4, pages.clone(), any::<bool>()).prop_map(
            |(domain, place, skip, pages, is_writable)| Request::Map { domain, place, skip, pages, is_writable }
        ),
        4 => (0..2usize, 0..4usize, 0u64..4, pages, any::<bool>()).prop_map(
            |(domain, place, skip, pages, by_range)| Request::Unmap { domain, place, skip, pages, by_range }
        ),
        1 => (0..2usize).prop_map(Request::Replace),
        2 => (0..3usize, 1u16..5).prop_map(|(function, count)| Request::Open(function, count)),
        3 => (0..3usize, 0u16..4, proptest::option::of(0x20u8..0x24)).prop_map(
            |(function, index, vector)| Request::Set(function, index, vector)
        ),
        1 => (0..3usize).prop_map(Request::Close),
        1 => Just(Request::Update),
    ]
}

/// The expected state.
#[derive(Default)]
struct Expected {
    attached: BTreeMap<usize, usize>,
    /// By domain and page: the frame, and whether it may be written.
    mapped: [BTreeMap<u64, (u64, bool)>; 2],
    opened: BTreeMap<usize, Vec<Option<u8>>>,
}

struct World {
    machine: Machine,
    /// `None` only while it is handed over.
    unit: Option<Unit<Machine>>,
    domains: Vec<Domain<SecondStage>>,
    expected: Expected,
}

impl World {
    fn new(features: Features) -> Self {
        let machine = Machine::new(features);
        let mut unit = started(&machine);
        unit.remap_interrupts(&mut machine.clone(), true).unwrap();
        let domains = (0..2).map(|index| domain(&machine, &unit, index + 1)).collect();
        Self { machine, unit: Some(unit), domains, expected: Expected::default() }
    }

    fn carry_out(&mut self, request: Request) {
        let memory = &mut self.machine.clone();
        let unit = self.unit.as_mut().unwrap();
        match request {
            Request::Attach(of, domain) => {
                unit.attach(memory, source(of), &self.domains[domain]).unwrap();
                self.expected.attached.insert(of, domain);
            }
            Request::Block(of) => {
                unit.block(memory, source(of)).unwrap();
                self.expected.attached.remove(&of);
            }
            Request::Map { domain, place, skip, pages, is_writable } => {
                let (address, phys) = (PLACES[place] + skip * PAGE, (16 << 30) + skip * PAGE);
                let tables = &mut self.domains[domain];
                let mapped = map(&self.machine, unit, tables, (address, phys), pages * PAGE, is_writable);
                self.expected.map(domain, address, phys, pages, is_writable, mapped.is_ok());
            }
            Request::Unmap { domain, place, skip, pages, by_range } => {
                let address = PLACES[place] + skip * PAGE;
                let tables = &mut self.domains[domain];
                let unmapped = unmap(&self.machine, unit, tables, address, pages * PAGE, by_range);
                self.expected.unmap(domain, address, pages, unmapped.is_ok());
            }
            Request::Replace(index) => self.replace(index),
            Request::Open(of, count) => {
                unit.open_interrupts(memory, source(of), count).unwrap();
                self.expected.opened.insert(of, std::vec![None; count.into()]);
            }
            Request::Set(of, index, vector) => {
                let interrupt = vector.map(|vector| Interrupt { vector, destination: 1, is_level: false });
                let set = unit.set_interrupt(memory, source(of), index, interrupt);
                let entry = self.expected.opened.get_mut(&of).and_then(|all| all.get_mut(usize::from(index)));
                assert_eq!(set.is_ok(), entry.is_some());
                entry.into_iter().for_each(|entry| *entry = vector);
            }
            Request::Close(of) => {
                unit.close_interrupts(memory, source(of)).unwrap();
                self.expected.opened.remove(&of);
            }
            Request::Update => {
                let left = unit.left();
                let writes = self.machine.unit(|unit| unit.writes);
                self.unit = Some(Unit::adopt(self.machine.clone(), memory, PLACE, left).unwrap());
                assert_eq!(self.machine.unit(|unit| unit.writes), writes);
            }
        }
    }

    /// A domain ends, and another gets its number.
    fn replace(&mut self, index: usize) {
        let memory = &mut self.machine.clone();
        let unit = self.unit.as_mut().unwrap();
        let attached = self.expected.attached.extract_if(.., |_, domain| *domain == index);
        attached.for_each(|(of, _)| unit.block(memory, source(of)).unwrap());
        let next = domain(&self.machine, unit, index as u16 + 1);
        std::mem::replace(&mut self.domains[index], next).free(memory);
        self.expected.mapped[index].clear();
    }

    fn check(&self) {
        for of in 0..FUNCTIONS.len() {
            let mapped = self.expected.attached.get(&of).map(|domain| &self.expected.mapped[*domain]);
            for address in probes() {
                let page = mapped.and_then(|mapped| mapped.get(&(address / PAGE)));
                for is_write in [false, true] {
                    let reached = self.machine.access(source(of).requester(), address, is_write).ok();
                    let expected = page.filter(|(_, may_write)| *may_write || !is_write).map(|(frame, _)| *frame);
                    assert_eq!(reached, expected, "function {of} at {address:#x}, write {is_write}");
                }
            }
            self.check_interrupts(of);
        }
        let is_wrong = |reason: &u8| is_of_a_wrong_table(*reason);
        assert!(!self.machine.unit(|unit| unit.reasons.iter().any(is_wrong)), "a table is wrong");
    }

    /// The function tries every entry near the beginning of the table.
    fn check_interrupts(&self, of: usize) {
        let unit = self.unit.as_ref().unwrap();
        let mut expected: BTreeMap<u64, u8> = BTreeMap::new();
        for (index, vector) in self.expected.opened.get(&of).into_iter().flatten().enumerate() {
            let message = unit.message(source(of), index as u16).unwrap();
            expected.extend(vector.map(|vector| ((message.address >> 5 & 0x7fff) + u64::from(message.data), vector)));
        }
        for index in 0..20 {
            let sent = self.machine.interrupt(source(of).requester(), 0xfee0_0010 | index << 5, 0).ok();
            assert_eq!(sent, expected.get(&index).map(|vector| (*vector, 1, false)));
        }
    }
}

impl Expected {
    fn map(&mut self, domain: usize, address: u64, phys: u64, pages: u64, is_writable: bool, is_done: bool) {
        let mapped = &mut self.mapped[domain];
        let first = address / PAGE;
        assert_eq!(is_done, mapped.range(first..first + pages).next().is_none());
        if is_done {
            mapped.extend((0..pages).map(|page| (first + page, (phys + page * PAGE, is_writable))));
        }
    }

    fn unmap(&mut self, domain: usize, address: u64, pages: u64, is_done: bool) {
        let mapped = &mut self.mapped[domain];
        let first = address / PAGE;
        assert_eq!(is_done, mapped.range(first..first + pages).count() as u64 == pages);
        if is_done {
            mapped.retain(|page, _| !(first..first + pages).contains(page));
        }
    }
}

fn source(of: usize) -> pci::Bdf {
    function(FUNCTIONS[of].0, FUNCTIONS[of].1)
}

fn probes() -> impl Iterator<Item = u64> {
    let pages = [0, 1, 2, 3, 4, 5, 300, 511, 512, 513, 515, 1023, 1024, 1027];
    PLACES.into_iter().flat_map(move |place| pages.map(|page| place + page * PAGE))
}

proptest! {
    #[test]
    fn functions_reach_what_is_mapped_and_send_what_is_opened(
        features in Features::any(),
        requests in prop::collection::vec(request(), 1..25),
    ) {
        let mut world = World::new(features);
        world.check();
        for request in requests {
            world.carry_out(request);
            world.check();
        }
        let World { machine, unit, domains, .. } = world;
        unit.unwrap().leave(&mut machine.clone()).unwrap();
        domains.into_iter().for_each(|domain| domain.free(&mut machine.clone()));
        prop_assert_eq!(machine.ram(|ram| ram.in_use()), 0);
    }
}

proptest! {
    // Most of these units are waited for to the end.
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn no_register_whatever_makes_it_panic_or_hang(capability: u64, extended: u64, status: u32) {
        let machine = machine();
        machine.unit(|unit| {
            (unit.capability, unit.extended) = (capability, extended);
            (unit.status, unit.is_unresponsive) = (status, true);
        });
        let _ = take_over(&machine, &[]).map(|_| ());
        let left = started(&super::setup::machine()).left();
        let _ = Unit::adopt(machine.clone(), &machine, PLACE, left).map(|_| ());
    }
}
