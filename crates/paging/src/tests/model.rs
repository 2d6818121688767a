// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random requests against the tables and against a model that only remembers the requests that were granted.

use std::collections::BTreeSet;
use std::vec::Vec;

use proptest::prelude::*;

use units::MIB;

use super::{BOTTOM_OF_HIGH_HALF, TestMemory};
use crate::*;

#[derive(Clone, Copy, Debug)]
enum Verb {
    Map(PhysAddr),
    Unmap,
    Protect,
}

#[derive(Clone, Copy, Debug)]
struct Request {
    verb: Verb,
    address: u64,
    bytes: u64,
    flags: Flags,
}

impl Request {
    fn covers(&self, address: u64) -> bool {
        address.checked_sub(self.address).is_some_and(|offset| offset < self.bytes)
    }
}

/// The granted requests, in order.
#[derive(Default)]
struct Model(Vec<Request>);

impl Model {
    fn lookup(&self, address: u64) -> Option<(PhysAddr, Flags)> {
        self.0.iter().filter(|request| request.covers(address)).fold(None, |before, request| match request.verb {
            Verb::Map(phys) => Some((PhysAddr(phys.0 + address - request.address), request.flags)),
            Verb::Unmap => None,
            Verb::Protect => before.map(|(phys, _)| (phys, request.flags)),
        })
    }

    /// Addresses between which translation cannot change.
    fn edges(&self) -> BTreeSet<u64> {
        self.0.iter().flat_map(|request| [request.address, request.address + request.bytes]).collect()
    }

    /// The first address of the request that is mapped, or unmapped.
    fn first(&self, request: &Request, mapped: bool) -> Option<u64> {
        let mut places = self.edges();
        places.insert(request.address);
        places.into_iter().find(|place| request.covers(*place) && self.lookup(*place).is_some() == mapped)
    }

    fn answer(&self, request: &Request) -> Result<(), MapError> {
        let obstacle = match request.verb {
            Verb::Map(_) => self.first(request, true).map(|address| MapError::AlreadyMapped { address }),
            Verb::Unmap | Verb::Protect => self.first(request, false).map(|address| MapError::NotMapped { address }),
        };
        obstacle.map_or(Ok(()), Err)
    }

    fn mapped_bytes(&self) -> u64 {
        let edges: Vec<u64> = self.edges().into_iter().collect();
        edges.windows(2).filter(|pair| self.lookup(pair[0]).is_some()).map(|pair| pair[1] - pair[0]).sum()
    }
}

fn issue(tables: &mut Tables<Host>, memory: &mut TestMemory, request: &Request) -> Result<(), MapError> {
    let Request { verb, address, bytes, flags } = *request;
    match verb {
        Verb::Map(phys) => tables.map(memory, address, phys, bytes, flags),
        Verb::Unmap => tables.unmap(memory, address, bytes),
        Verb::Protect => tables.protect(memory, address, bytes, flags),
    }
}

fn check(tables: &Tables<Host>, memory: &TestMemory, model: &Model) {
    for edge in model.edges() {
        for address in [edge, edge + 4095, edge.saturating_sub(1)] {
            let found = tables.translate(memory, address).map(|mapping| (mapping.phys, mapping.flags));
            assert_eq!(found, model.lookup(address), "{address:#x}");
        }
    }
    let mut bytes = 0;
    tables.visit(memory, |mapping| {
        bytes += mapping.size.bytes();
        assert!(mapping.size <= tables.largest);
        assert_eq!(model.lookup(mapping.address), Some((mapping.phys, mapping.flags)));
    });
    assert_eq!(bytes, model.mapped_bytes());
}

fn flags() -> impl Strategy<Value = Flags> {
    prop::sample::select(std::vec![Flags::empty(), Flags::WRITABLE, Flags::NO_EXECUTE | Flags::GLOBAL])
}

/// Small counts of one page size, so that requests meet, in one of two corners of the address space.
fn request() -> impl Strategy<Value = Request> {
    let verb = prop_oneof![
        3 => (0u64..4, prop::sample::select(&PageSize::ALL[..]), 0u64..2)
            .prop_map(|(count, size, odd)| Verb::Map(PhysAddr(count * size.bytes() + odd * 4096))),
        2 => Just(Verb::Unmap),
        1 => Just(Verb::Protect),
    ];
    let base = prop::sample::select(std::vec![0, BOTTOM_OF_HIGH_HALF]);
    let sizes = prop::sample::select(&PageSize::ALL[..]);
    (verb, base, 0u64..4, 0u64..2, sizes.clone(), 0u64..4, sizes, flags()).prop_map(
        |(verb, base, start, odd, start_size, count, size, flags)| {
            let address = base + start * start_size.bytes() + odd * 4096;
            let bytes = match verb {
                // Only 4 KiB pages will do here: keep their number small.
                Verb::Map(phys) if (address ^ phys.0) % (2 * MIB) != 0 => (count * size.bytes()).min(6 * MIB),
                _ => count * size.bytes(),
            };
            Request { verb, address, bytes, flags }
        },
    )
}

proptest! {
    #[test]
    fn tables_agree_with_the_model_and_return_every_frame(
        requests in prop::collection::vec(request(), 1..12),
        largest in prop::sample::select(&PageSize::ALL[1..]),
        budget in prop_oneof![Just(100_000usize), 1usize..12],
    ) {
        let mut memory = TestMemory::with_budget(budget);
        let mut tables = Tables::<Host>::new(&mut memory, largest).unwrap();
        let mut model = Model::default();
        for request in requests {
            let before = memory.frames.len();
            let expected = model.answer(&request);
            match issue(&mut tables, &mut memory, &request) {
                Err(MapError::OutOfTables) => {
                    prop_assert!(expected.is_ok() && budget < 100_000);
                    prop_assert!(!matches!(request.verb, Verb::Map(_)) || memory.frames.len() == before);
                }
                answer => {
                    prop_assert_eq!(answer, expected);
                    if answer.is_ok() {
                        model.0.push(request);
                    }
                }
            }
            check(&tables, &memory, &model);
        }
        tables.free_all(&mut memory);
        prop_assert!(memory.frames.is_empty());
    }

    #[test]
    fn no_request_whatever_panics(address: u64, phys: u64, bytes: u64, mask in 0u32..40) {
        let mut memory = TestMemory::with_budget(30);
        let mut tables = Tables::<Nested>::new(&mut memory, PageSize::Gib1).unwrap();
        let (address, phys, bytes) = (address & !4095, phys & !4095, (bytes >> mask) & !4095);
        let mapped = tables.map(&mut memory, address, PhysAddr(phys), bytes, Flags::empty());
        if mapped.is_ok() && bytes > 0 {
            prop_assert_eq!(tables.translate(&memory, address).unwrap().phys, PhysAddr(phys));
            prop_assert_eq!(tables.unmap(&mut memory, address, bytes), Ok(()));
        }
        prop_assert_eq!(memory.frames.len(), 1);
    }
}
