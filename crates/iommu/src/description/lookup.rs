// SPDX-License-Identifier: MIT OR Apache-2.0
//! Questions to a description.
//!
//! Firmware does not list virtual functions: ask for a virtual function by its physical one, unless a range of the
//! table has it.

use pci::Bdf;

use super::contents::Description;
use super::reserved::Reserved;
use super::unit::{Interrupter, InterrupterKind, Scope, Settings};

impl Description {
    /// Returns the place of the unit that a function is behind; `None` if its transfers pass none.
    pub fn unit_of(&self, place: Bdf) -> Option<usize> {
        let requester = place.requester();
        let is_of_segment =
            |scope: &&Scope| self.units.get(usize::from(scope.unit)).is_some_and(|unit| unit.segment == place.segment);
        let named = || self.scopes.iter().filter(is_of_segment);
        // A range that has the function comes before one that has it only as an alias.
        let listed =
            named().find(|scope| scope.contains(requester)).or_else(|| named().find(|scope| scope.concerns(requester)));
        let rest = || self.units.iter().position(|unit| unit.segment == place.segment && unit.covers_rest);
        listed.map(|scope| usize::from(scope.unit)).or_else(rest)
    }

    /// Returns the function that the unit uses for a function's transfers: itself, unless firmware gives another one.
    pub fn alias_of(&self, place: Bdf) -> Bdf {
        let requester = place.requester();
        let mut listed = self.scopes_of(place).filter(|scope| scope.contains(requester));
        let alias = listed.find_map(|scope| scope.alias);
        alias.map_or(place, |alias| Bdf::of_requester(place.segment, alias))
    }

    /// Returns firmware's settings for the device table entry of a function: those of all entries of the table for it,
    /// or for one that has it as its alias.
    pub fn settings_of(&self, place: Bdf) -> Settings {
        let unit = self.unit_of(place).and_then(|unit| self.units.get(unit));
        let rest = unit.map_or(Settings::default(), |unit| unit.rest_settings);
        self.scopes_of(place).fold(rest, |settings, scope| settings.union(scope.settings))
    }

    /// Returns whether firmware forbids ATS for a function.
    pub fn forbids_ats(&self, place: Bdf) -> bool {
        self.scopes_of(place).any(|scope| scope.forbids_ats)
    }

    /// Returns the memory that firmware reserves for a function, or for its alias; also that with a
    /// [`Defect`](super::Defect).
    pub fn reserved_for(&self, place: Bdf) -> impl Iterator<Item = &Reserved> {
        let alias = self.alias_of(place);
        self.reserved.iter().filter(move |reserved| reserved.is_for(place) || reserved.is_for(alias))
    }

    /// Returns the I/O APIC with the identifier that the MADT gives it, if it is behind a unit.
    pub fn io_apic(&self, id: u8) -> Option<&Interrupter> {
        self.interrupters.iter().find(|known| known.kind == InterrupterKind::IoApic && known.id == id)
    }

    /// Returns the event timer of this number, if it is behind a unit.
    pub fn hpet(&self, number: u8) -> Option<&Interrupter> {
        self.interrupters.iter().find(|known| known.kind == InterrupterKind::Hpet && known.id == number)
    }

    /// Returns the ranges that a function is in, of the unit that it is behind.
    fn scopes_of(&self, place: Bdf) -> impl Iterator<Item = &Scope> {
        let unit = self.unit_of(place);
        let is_of = move |scope: &&Scope| unit == Some(usize::from(scope.unit)) && scope.concerns(place.requester());
        self.scopes.iter().filter(is_of)
    }
}
