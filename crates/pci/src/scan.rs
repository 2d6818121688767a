// SPDX-License-Identifier: MIT OR Apache-2.0
//! The walk over buses and slots, a function at a time.
//!
//! Buses are found as their bridges are (PCI-to-PCI Bridge 1.2, chapter 3): firmware has numbered them. Every bus is
//! walked at most once, for any registers of the bridges, so the walk ends after 256 buses of 32 devices of 8 functions
//! at the latest. A function that is not ready is asked again in the next step, so that no step lasts longer than one
//! function's registers.
//!
//! Behind a PCI Express port there is one device. A bus to which no bridge leads (a second root, which only AML names)
//! is not found, but a filter may name places on it.

use arrayvec::ArrayVec;

use crate::config::{ConfigSpace, Cost, Registers};
use crate::filter::MAX_PATTERNS;
use crate::function::{self, FirstRegisters, Function, Kind, Response};
use crate::problem::Problem;
use crate::{Bdf, Filter};

/// Result of a step of the walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// There is more to check.
    More,
    /// All has been checked.
    Done,
}

/// Number of times that a function which is not ready is asked: with pauses of a microsecond, a millisecond. Firmware
/// has waited before.
const MAX_ASKS: u32 = 1000;

/// A walk under way.
#[derive(Clone, Debug)]
pub struct Scan {
    filter: Filter,
    segment: u16,
    /// Places still to be checked, where the filter names only places.
    places: Option<ArrayVec<Bdf, MAX_PATTERNS>>,
    /// A bit for each bus that is known, for each that has been walked, and for each that is a link to one device.
    known: Buses,
    walked: Buses,
    links: Buses,
    /// The place to check next, where that is decided.
    next: Option<Bdf>,
    /// Number of replies of the function there that it is not ready, and their cost.
    asked: u32,
    waited: Cost,
    cost: Cost,
}

impl Scan {
    /// Begins a walk over the buses below `roots` in a segment.
    pub fn new(filter: &Filter, segment: u16, roots: impl IntoIterator<Item = u8>) -> Self {
        let mut known = Buses::default();
        roots.into_iter().for_each(|bus| known.insert(bus));
        let mut places = filter.places();
        places.iter_mut().for_each(|places| places.retain(|place| place.segment == segment));
        let (walked, links, cost) = (Buses::default(), Buses::default(), Cost::default());
        Self { filter: filter.clone(), segment, places, known, walked, links, next: None, asked: 0, waited: cost, cost }
    }

    /// Returns what the walk has cost so far, empty slots included.
    pub fn cost(&self) -> Cost {
        self.cost
    }

    /// Checks the next place. A function there that the filter allows is handed to `found`.
    pub fn step(&mut self, config: &mut dyn ConfigSpace, found: &mut dyn FnMut(Function)) -> Step {
        let Some(place) = self.next.take().or_else(|| self.begin()) else { return Step::Done };
        let mut registers = Registers::of(config, place);
        let first = match function::read_first(&mut registers) {
            Response::NotReady if self.asked + 1 < MAX_ASKS => {
                registers.pause();
                self.asked += 1;
                let cost = registers.cost();
                self.waited += cost;
                self.cost += cost;
                self.next = Some(place);
                return Step::More;
            }
            Response::NotReady => Some(FirstRegisters::never_ready()),
            Response::Present(first) => Some(first),
            Response::Absent => None,
        };
        self.next = self.behind(place, first.as_ref().is_some_and(|first| first.has_siblings));
        if let Some(first) = &first {
            self.probe_allowed(&mut registers, first, found);
        }
        self.cost += registers.cost();
        (self.asked, self.waited) = (0, Cost::default());
        Step::More
    }

    /// Returns where to go on once a device's or a bus's places are all checked.
    fn begin(&mut self) -> Option<Bdf> {
        if let Some(places) = &mut self.places {
            return places.pop_at(0);
        }
        let bus = (0..=u8::MAX).find(|&bus| self.known.contains(bus) && !self.walked.contains(bus))?;
        self.walked.insert(bus);
        Bdf::new(self.segment, bus, 0, 0)
    }

    /// Returns the place behind this one on its bus.
    fn behind(&self, place: Bdf, has_siblings: bool) -> Option<Bdf> {
        if self.places.is_some() {
            return None;
        }
        if has_siblings || place.function() != 0 {
            let sibling = place.with_function(place.function() + 1);
            return sibling.or_else(|| self.next_device(place));
        }
        self.next_device(place)
    }

    fn next_device(&self, place: Bdf) -> Option<Bdf> {
        let is_alone = self.links.contains(place.bus);
        Bdf::new(self.segment, place.bus, place.device() + 1, 0).filter(|_| !is_alone)
    }

    /// Probes a function that is allowed, and each bridge, since they are the way to the others.
    fn probe_allowed(
        &mut self,
        registers: &mut Registers<'_>,
        first: &FirstRegisters,
        found: &mut dyn FnMut(Function),
    ) {
        let is_allowed = self.filter.allows(registers.place(), &first.identity);
        if !is_allowed && (first.header != 1 || self.places.is_some()) {
            return;
        }
        let mut function = function::probe(registers, first);
        function.cost += self.waited;
        if let Kind::Bridge { secondary, .. } = function.kind {
            if self.known.contains(secondary) {
                function.problems.push(Problem::BridgeLoop { bus: secondary });
            } else if function.capabilities.iter().any(|capability| capability.is_of_a_port_downwards()) {
                self.links.insert(secondary);
            }
            self.known.insert(secondary);
        }
        if is_allowed {
            found(function);
        }
    }
}

/// A set of buses.
#[derive(Clone, Copy, Debug, Default)]
struct Buses([u64; 4]);

impl Buses {
    fn insert(&mut self, bus: u8) {
        self.0[usize::from(bus / 64)] |= 1 << (bus % 64);
    }

    fn contains(self, bus: u8) -> bool {
        self.0[usize::from(bus / 64)] & 1 << (bus % 64) != 0
    }
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
