// SPDX-License-Identifier: MIT OR Apache-2.0
//! Firmware's description of one unit, in the form that the vendors' modules need.

use alloc::vec::Vec;

use paging::Format;
use pci::Bdf;
use units::{PageSize, PhysRange};

use crate::amd::{self, AmdFormat};
use crate::description::{Description, Reserved};
use crate::{Domain, DomainId, Memory, Problem, intel};

/// The domain of memory that firmware reserves.
pub const FIRMWARE: DomainId = DomainId(1);

/// The most functions of a unit for which firmware's memory or settings count. Further ones stay blocked: a table that
/// names every function must not cost the host its memory.
const MAX_NAMED: usize = 4096;

/// A unit's place in the machine.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    /// Firmware's description.
    pub description: &'a Description,
    /// The unit's number among the description's units.
    pub number: usize,
    /// The host's local APICs are in x2APIC mode.
    pub is_x2apic: bool,
}

impl<'a> Place<'a> {
    pub(super) fn segment(self) -> u16 {
        self.description.units.get(self.number).map_or(0, |unit| unit.segment)
    }

    pub(super) fn intel(self) -> intel::Place {
        let bytes = self.description.units.get(self.number).map_or(0, |unit| unit.register_bytes);
        intel::Place { segment: self.segment(), window_bytes: u32::try_from(bytes).unwrap_or(u32::MAX) }
    }

    /// Returns the highest requester identifier behind the unit.
    pub(super) fn highest(self) -> u16 {
        let covers_rest = self.description.units.get(self.number).is_none_or(|unit| unit.covers_rest);
        let scopes = self.description.scopes.iter().filter(|scope| usize::from(scope.unit) == self.number);
        let named = scopes.map(|scope| scope.last.max(scope.alias.unwrap_or(0))).max();
        if covers_rest { u16::MAX } else { named.unwrap_or(u16::MAX) }
    }

    pub(super) fn setup<'r>(self, requesters: &'r [amd::Requester]) -> amd::Setup<'r> {
        let link = self.description.units.get(self.number).map_or(0, |unit| unit.link.0);
        amd::Setup {
            segment: self.segment(),
            highest: self.highest(),
            flags: link,
            is_x2apic: self.is_x2apic,
            requesters,
        }
    }

    /// Returns the memory that firmware reserves for functions behind this unit, unless something is wrong with it.
    fn reserved(self) -> impl Iterator<Item = &'a Reserved> {
        let is_here = move |reserved: &&Reserved| {
            let first = Bdf::of_requester(reserved.segment, reserved.first);
            reserved.is_readable && reserved.defect.is_none() && self.description.unit_of(first) == Some(self.number)
        };
        self.description.reserved.iter().filter(is_here)
    }

    /// Returns the functions that reserved memory is for.
    pub(super) fn reserved_sources(self) -> Vec<Bdf> {
        let functions = |reserved: &'a Reserved| {
            let all = (reserved.first..=reserved.last).map(|requester| Bdf::of_requester(reserved.segment, requester));
            all.map(|place| self.description.alias_of(place))
        };
        let mut sources: Vec<Bdf> = self.reserved().flat_map(functions).take(MAX_NAMED).collect();
        sort::ascending(&mut sources);
        sources.dedup();
        sources
    }

    /// Returns a domain that maps it at its own addresses.
    pub(super) fn firmware_domain<F: Format>(self, memory: &mut impl Memory) -> Result<Domain<F>, Problem> {
        let mut domain = Domain::new(FIRMWARE, memory, PageSize::Mib2)?;
        for (range, is_writable) in merged(self.reserved()) {
            domain.map(memory, range.start().0, range.start(), range.bytes(), is_writable)?;
        }
        Ok(domain)
    }

    /// Returns the requesters with an entry that is not blocked.
    pub(super) fn requesters(self, domain: &Domain<AmdFormat>) -> Vec<amd::Requester> {
        let blank = |requester| amd::Requester { requester, flags: 0, passes_interrupts: false, domain: None };
        let mut all: Vec<amd::Requester> = Vec::new();
        for source in self.reserved_sources() {
            all.push(amd::Requester { domain: Some((domain.id(), domain.root())), ..blank(source.requester()) });
        }
        let here = self.description.interrupters.iter().filter(|known| usize::from(known.unit) == self.number);
        all.extend(here.map(|known| amd::Requester { passes_interrupts: true, ..blank(known.requester) }));
        let scopes = self.description.scopes.iter().filter(|scope| usize::from(scope.unit) == self.number);
        let with_settings = scopes.filter(|scope| scope.settings.0 != 0).flat_map(|scope| {
            let requesters = scope.alias.map_or(scope.first..=scope.last, |alias| alias..=alias);
            requesters.map(move |requester| amd::Requester { flags: scope.settings.0, ..blank(requester) })
        });
        all.extend(with_settings.take(MAX_NAMED));
        all
    }
}

/// Returns disjoint ranges, by rising address, and whether devices write them.
fn merged<'a>(reserved: impl Iterator<Item = &'a Reserved>) -> Vec<(PhysRange, bool)> {
    let mut ranges: Vec<(PhysRange, bool)> = reserved.map(|reserved| (reserved.range, reserved.is_writable)).collect();
    sort::by_key(&mut ranges, |(range, _)| range.start());
    let mut merged: Vec<(PhysRange, bool)> = Vec::new();
    for (range, is_writable) in ranges {
        match merged.last_mut() {
            Some((last, was_writable)) if range.start() < last.end() => {
                *last = PhysRange::new(last.start(), last.end().max(range.end())).unwrap_or(*last);
                *was_writable |= is_writable;
            }
            _ => merged.push((range, is_writable)),
        }
    }
    merged
}

#[cfg(test)]
#[path = "place_tests.rs"]
mod tests;
