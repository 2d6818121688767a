// SPDX-License-Identifier: MIT OR Apache-2.0
//! Machines, functions and domains for tests.

use paging::MapError;
use pci::Bdf;
use units::{PageSize, PhysAddr};

use crate::domain::{Domain, DomainId};
use crate::intel::model::{Features, Machine};
use crate::intel::{Place, SecondStage, Unit, WrittenBack};
use crate::problem::Problem;

pub(super) const PLACE: Place = Place { segment: 0, window_bytes: 0x1000 };

pub(super) fn function(bus: u8, device: u8) -> Bdf {
    Bdf::new(0, bus, device, 0).unwrap()
}

pub(super) fn machine() -> Machine {
    Machine::new(Features::default())
}

pub(super) fn started(machine: &Machine) -> Unit<Machine> {
    take_over(machine, &[]).unwrap()
}

pub(super) fn take_over(machine: &Machine, reserved: &[(Bdf, &Domain<SecondStage>)]) -> Result<Unit<Machine>, Problem> {
    Unit::take_over(machine.clone(), &mut machine.clone(), PLACE, reserved)
}

/// Returns an empty domain that the unit can translate.
pub(super) fn domain(machine: &Machine, unit: &Unit<Machine>, id: u16) -> Domain<SecondStage> {
    let mut memory = machine.clone();
    let (id, largest) = (DomainId(id), unit.largest_page());
    let domain = match unit.is_coherent() {
        true => Domain::new(id, &mut memory, largest),
        false => Domain::new(id, &mut WrittenBack(&mut memory), largest),
    };
    domain.unwrap().with_limit(unit.address_limit())
}

/// Maps memory as an owner of any unit must.
pub(super) fn map(
    machine: &Machine,
    unit: &mut Unit<Machine>,
    domain: &mut Domain<SecondStage>,
    at: (u64, u64),
    bytes: u64,
    is_writable: bool,
) -> Result<(), MapError> {
    let mut memory = machine.clone();
    let (address, phys) = (at.0, PhysAddr(at.1));
    match unit.is_coherent() {
        true => domain.map(&mut memory, address, phys, bytes, is_writable)?,
        false => domain.map(&mut WrittenBack(&mut memory), address, phys, bytes, is_writable)?,
    }
    unit.mapped(&mut memory, domain.id()).unwrap();
    Ok(())
}

/// Unmaps memory as an owner must; `by_range` invalidates only that range.
pub(super) fn unmap(
    machine: &Machine,
    unit: &mut Unit<Machine>,
    domain: &mut Domain<SecondStage>,
    address: u64,
    bytes: u64,
    by_range: bool,
) -> Result<(), MapError> {
    let mut memory = machine.clone();
    match unit.is_coherent() {
        true => domain.unmap(&mut memory, address, bytes)?,
        false => domain.unmap(&mut WrittenBack(&mut memory), address, bytes)?,
    }
    match by_range {
        true => unit.invalidate_range(&mut memory, domain.id(), address, bytes).unwrap(),
        false => unit.invalidate(&mut memory, domain.id()).unwrap(),
    }
    Ok(())
}

/// Returns a domain that maps one page, address 0x5000 to 0x9000, for a unit in reset.
pub(super) fn one_page(machine: &Machine, id: u16) -> Domain<SecondStage> {
    let mut memory = machine.clone();
    let mut domain = Domain::new(DomainId(id), &mut memory, PageSize::Kib4).unwrap();
    domain.map(&mut memory, 0x5000, PhysAddr(0x9000), 0x1000, true).unwrap();
    domain
}
