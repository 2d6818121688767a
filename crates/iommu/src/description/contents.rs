// SPDX-License-Identifier: MIT OR Apache-2.0
//! The description, and what it takes in.

use arrayvec::ArrayVec;
use firmware::Signature;
use units::{PAGE_BYTES, PHYSICAL_LIMIT, PhysRange};

use super::problem::{TableFault, TableProblem};
use super::reserved::{Defect, Reserved};
use super::unit::{Interrupter, Kind, Scope, Settings, UnitDescription};

/// Units kept.
pub const MAX_UNITS: usize = 16;
/// Ranges of functions kept, of all units together.
pub const MAX_SCOPES: usize = 256;
/// I/O APICs and event timers kept.
pub const MAX_INTERRUPTERS: usize = 32;
/// Pieces of reserved memory kept; one for two ranges of functions counts twice.
pub const MAX_RESERVED: usize = 64;
/// Problems kept; more are only counted.
pub const MAX_PROBLEMS: usize = 32;

/// The machine's IOMMUs as firmware describes them. About 8 KiB: meant for a `static`, not for a small stack.
#[derive(Debug)]
pub struct Description {
    /// The vendor; `None` where firmware describes none.
    pub kind: Option<Kind>,
    /// Bits of a physical address, as the table has it.
    pub address_bits: u8,
    /// Units remap interrupts, too. AMD's table leaves that to their registers, and means yes here.
    pub remaps_interrupts: bool,
    /// Firmware asks the host to stay in xAPIC mode (Intel's X2APIC_OPT_OUT).
    pub refuses_x2apic: bool,
    /// Firmware asks the host to keep devices from memory that is not theirs from the start.
    pub wants_protection: bool,
    /// Units, in the table's order.
    pub units: ArrayVec<UnitDescription, MAX_UNITS>,
    /// Which functions are behind which unit.
    pub scopes: ArrayVec<Scope, MAX_SCOPES>,
    /// I/O APICs and event timers.
    pub interrupters: ArrayVec<Interrupter, MAX_INTERRUPTERS>,
    /// Memory that devices use on behalf of firmware. What has a [`Defect`] is kept to be reported.
    pub reserved: ArrayVec<Reserved, MAX_RESERVED>,
    /// The problems found.
    pub problems: ArrayVec<TableProblem, MAX_PROBLEMS>,
    /// Problems that [`Description::problems`] had no room for.
    pub problems_dropped: u32,
}

impl Description {
    /// Returns the description of a machine without IOMMUs.
    pub const fn new() -> Self {
        Self {
            kind: None,
            address_bits: 0,
            remaps_interrupts: false,
            refuses_x2apic: false,
            wants_protection: false,
            units: ArrayVec::new_const(),
            scopes: ArrayVec::new_const(),
            interrupters: ArrayVec::new_const(),
            reserved: ArrayVec::new_const(),
            problems: ArrayVec::new_const(),
            problems_dropped: 0,
        }
    }

    /// Resets it to [`Description::new`], field by field: no second value of this size on the stack.
    pub fn clear(&mut self) {
        self.kind = None;
        self.address_bits = 0;
        self.remaps_interrupts = false;
        self.refuses_x2apic = false;
        self.wants_protection = false;
        self.units.clear();
        self.scopes.clear();
        self.interrupters.clear();
        self.reserved.clear();
        self.problems.clear();
        self.problems_dropped = 0;
    }

    /// Marks reserved memory that must not be given to devices after all: what the memory map offers for use, by
    /// `is_usable_memory` (some of the range is), and the units' registers. Once, when the table was read.
    pub fn check_reserved(&mut self, is_usable_memory: impl Fn(PhysRange) -> bool) {
        for index in 0..self.reserved.len() {
            let Reserved { range, offset, defect: None, .. } = self.reserved[index] else { continue };
            let holds_registers = self.units.iter().any(|unit| unit.register_range().intersection(range).is_some());
            let defect = match () {
                () if is_usable_memory(range) => Defect::UsableMemory,
                () if holds_registers => Defect::Registers,
                () => continue,
            };
            self.reserved[index].defect = Some(defect);
            self.report(offset, TableFault::BadMemory(defect));
        }
    }

    /// Adds a unit and returns its place. Its registers must be at a multiple of `alignment` bytes.
    pub(super) fn add_unit(&mut self, unit: UnitDescription, alignment: u64) -> Result<u8, TableFault> {
        let address = unit.registers.0;
        let range = PhysRange::from_start(unit.registers, unit.register_bytes);
        let Some(range) = range.filter(|range| {
            address != 0 && unit.registers.is_aligned(alignment.max(PAGE_BYTES)) && range.end().0 <= PHYSICAL_LIMIT
        }) else {
            return Err(TableFault::BadRegisters { address });
        };
        if self.units.iter().any(|known| known.register_range().intersection(range).is_some()) {
            return Err(TableFault::SharedRegisters { address });
        }
        self.units.try_push(unit).map_err(|_| TableFault::NoRoom)?;
        Ok((self.units.len() - 1) as u8)
    }

    /// Puts all other functions of its segment behind a unit.
    pub(super) fn add_rest(&mut self, unit: u8, settings: Settings) -> Result<(), TableFault> {
        let place = usize::from(unit);
        let segment = self.units[place].segment;
        let mut others = self.units.iter().enumerate().filter(|(other, _)| *other != place);
        if others.any(|(_, other)| other.segment == segment && other.covers_rest) {
            return Err(TableFault::TwoRests);
        }
        self.units[place].covers_rest = true;
        self.units[place].rest_settings = self.units[place].rest_settings.union(settings);
        Ok(())
    }

    /// Puts functions behind a unit.
    pub(super) fn add_scope(&mut self, offset: u32, scope: Scope) {
        if let Some(fault) = self.conflict(&scope) {
            self.report(offset, fault);
        }
        // One that adds nothing takes no place: firmware lists each I/O APIC and event timer of one function.
        if !self.scopes.contains(&scope) && self.scopes.try_push(scope).is_err() {
            self.report(offset, TableFault::NoRoom);
        }
    }

    /// Returns how an earlier range of functions contradicts this one.
    fn conflict(&self, scope: &Scope) -> Option<TableFault> {
        let segment = self.units[usize::from(scope.unit)].segment;
        let earlier = self.scopes.iter().filter(|known| known.overlaps(scope));
        let mut faults = earlier.filter_map(|known| {
            let requester = scope.first.max(known.first);
            if self.units[usize::from(known.unit)].segment != segment {
                None
            } else if known.unit != scope.unit {
                Some(TableFault::TwoUnits { requester })
            } else {
                let is_other = scope.alias.is_some() && known.alias.is_some() && scope.alias != known.alias;
                is_other.then_some(TableFault::TwoAliases { requester })
            }
        });
        faults.next()
    }

    /// Takes an I/O APIC or event timer in.
    pub(super) fn add_interrupter(&mut self, added: Interrupter) -> Result<(), TableFault> {
        match self.interrupters.iter().find(|known| (known.kind, known.id) == (added.kind, added.id)) {
            Some(known) if *known == added => Ok(()),
            Some(_) => Err(TableFault::RepeatedInterrupter { id: added.id }),
            None => self.interrupters.try_push(added).map_err(|_| TableFault::NoRoom),
        }
    }

    /// Takes reserved memory in.
    pub(super) fn add_reserved(&mut self, reserved: Reserved) {
        if let Some(defect) = reserved.defect {
            self.report(reserved.offset, TableFault::BadMemory(defect));
        }
        if self.reserved.try_push(reserved).is_err() {
            self.report(reserved.offset, TableFault::NoRoom);
        }
    }

    /// Notes a problem, or counts it where there is no room.
    pub(super) fn report(&mut self, offset: u32, fault: TableFault) {
        let table = if self.kind == Some(Kind::Intel) { Signature::DMAR } else { Signature::IVRS };
        if self.problems.try_push(TableProblem { table, offset, fault }).is_err() {
            self.problems_dropped = self.problems_dropped.saturating_add(1);
        }
    }
}

impl Default for Description {
    fn default() -> Self {
        Self::new()
    }
}
