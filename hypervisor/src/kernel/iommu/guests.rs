// SPDX-License-Identifier: MIT OR Apache-2.0
//! Functions that guests have: what they reach, and where their interrupts go.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use iommu::{DomainId, GuestDomain, Interrupt, Message, Problem, Store, Unit};
use pci::Bdf;
use units::PhysRange;

use super::given::Given;
use super::{IOMMUS, Iommus};
use crate::arch::iommu::{TableWords, UnitRegisters};

/// The first guest's domain; those below are no guest's: unassigned functions, and firmware's.
const FIRST_DOMAIN: u16 = 2;

/// Lets a function reach a guest's memory, by the guest's addresses, and nothing else. The memory is the same at each
/// call for a guest, until [`free`].
///
/// # Errors
/// No IOMMU isolates the function, or its unit fails; the function reaches nothing.
pub fn attach(guest: u32, function: Bdf, memory: &[(u64, PhysRange)]) -> Result<(), String> {
    with(|iommus| {
        let (number, _, _) = iommus.unit_of(function)?;
        if iommus.given_of(guest, number).is_none() {
            let domain = iommus.create(number, guest, memory)?;
            iommus.given.push(Given { guest, unit: number, domain, functions: Vec::new() });
        }
        let Iommus { units, store, given, .. } = iommus;
        let known = given.iter_mut().find(|given| (given.guest, given.unit) == (guest, number));
        match (&mut units[number].unit, known) {
            (Ok(unit), Some(known)) => {
                known.add(function);
                unit.attach(store, function, &known.domain).map_err(text)
            }
            _ => Err("its IOMMU has failed".to_string()),
        }
    })
}

/// Checks that a function can be attached.
///
/// # Errors
/// No IOMMU isolates the function.
pub fn check(function: Bdf) -> Result<(), String> {
    with(|iommus| iommus.unit_of(function).map(|_| ()))
}

/// Returns whether functions can be given and changed: in an image that replaced another one, once it has gone on with
/// the IOMMUs.
pub fn is_ready() -> bool {
    IOMMUS.lock().is_some()
}

/// A function is a guest's since an image before this one. Returns whether it is attached as that has left it.
///
/// # Errors
/// No IOMMU isolates the function, or its unit fails.
pub fn adopt(guest: u32, function: Bdf) -> Result<bool, String> {
    with(|iommus| {
        let (number, unit, store) = iommus.unit_of(function)?;
        let domain = unit.attached(store, function).map_err(text)?;
        let Some(domain) = domain.filter(|domain| Ok(domain.id()) == domain_of(guest)) else { return Ok(false) };
        match iommus.given.iter_mut().find(|given| (given.guest, given.unit) == (guest, number)) {
            Some(known) => known.add(function),
            None => iommus.given.push(Given { guest, unit: number, domain, functions: vec![function] }),
        }
        Ok(true)
    })
}

/// A function reaches nothing any more, and sends no interrupt.
///
/// # Errors
/// Its unit does not answer: it may reach what it has reached.
pub fn release(function: Bdf) -> Result<(), String> {
    with(|iommus| {
        let (_, unit, store) = iommus.unit_of(function)?;
        unit.block(store, function).map_err(text)
    })
}

/// A function reaches nothing any more, and sends no interrupt, while its guest goes on. The guest's last function
/// gives the tables of its memory back.
///
/// # Errors
/// Its unit does not answer: it may reach what it has reached.
pub fn detach(function: Bdf) -> Result<(), String> {
    with(|iommus| {
        let (number, unit, store) = iommus.unit_of(function)?;
        unit.block(store, function).map_err(text)?;
        iommus.leave_domain(number, function)
    })
}

/// A function reaches nothing any more, and sends no interrupt. Its unit logs as little as it can of what it refuses
/// the function, until that is [attached](attach). Any function, also one that no guest can have.
///
/// # Errors
/// It passes no IOMMU, or its unit does not answer: it may reach what it has reached, and so even after [`release`].
pub fn stop(function: Bdf) -> Result<(), String> {
    with(|iommus| {
        let number = iommus.description.unit_of(function).ok_or("its transfers pass no IOMMU")?;
        let mut stopped = iommus.stop(number, function)?;
        if stopped == Err(Problem::OutOfMemory) {
            iommus.add_memory()?;
            stopped = iommus.stop(number, function)?;
        }
        stopped.map_err(text)?;
        iommus.leave_domain(number, function)
    })
}

/// Returns whether a function was stopped, and no guest was given it since.
pub fn is_stopped(function: Bdf) -> bool {
    let iommus = IOMMUS.lock();
    let Some(iommus) = iommus.as_ref() else { return false };
    let unit = iommus.description.unit_of(function).and_then(|number| iommus.units.get(number)?.unit.as_ref().ok());
    unit.is_some_and(|unit| unit.is_stopped(&iommus.store, function) == Ok(true))
}

/// No function of a guest's reaches anything any more: its tables are given back.
///
/// # Errors
/// A unit does not answer: it may still read the tables, which are kept.
pub fn free(guest: u32) -> Result<(), String> {
    let mut iommus = IOMMUS.lock();
    let Some(iommus) = iommus.as_mut() else { return Ok(()) };
    let Iommus { units, store, given, .. } = &mut **iommus;
    let mut result = Ok(());
    for known in given.extract_if(.., |given| given.guest == guest) {
        let freed = match &mut units[known.unit].unit {
            Ok(unit) => unit.free_domain(store, known.domain).map_err(text),
            Err(problem) => Err(problem.clone()),
        };
        result = result.and(freed);
    }
    result
}

/// Makes room for so many interrupts of a function, all of them closed.
///
/// # Errors
/// Its unit does not remap interrupts, or not so many; or it fails.
pub fn open_interrupts(function: Bdf, count: u16) -> Result<(), String> {
    with(|iommus| {
        let mut opened = iommus.open(function, count)?;
        if opened == Err(Problem::OutOfMemory) {
            iommus.add_memory()?;
            opened = iommus.open(function, count)?;
        }
        opened.map_err(text)
    })
}

/// Closes all interrupts of a function.
///
/// # Errors
/// The unit fails: they may stay open.
pub fn close_interrupts(function: Bdf) -> Result<(), String> {
    // As many as before, or fewer: what there is was opened.
    open_interrupts(function, 1)
}

/// Sends an interrupt of a function somewhere from now on, or nowhere.
///
/// # Errors
/// It was not opened, it cannot go there, or the unit fails.
pub fn set_interrupt(function: Bdf, index: u16, interrupt: Option<Interrupt>) -> Result<(), String> {
    with(|iommus| {
        let (_, unit, store) = iommus.unit_of(function)?;
        unit.set_interrupt(store, function, index, interrupt).map_err(text)
    })
}

/// Returns the message that a function writes to send an interrupt.
///
/// # Errors
/// It was not opened.
pub fn message(function: Bdf, index: u16) -> Result<Message, String> {
    with(|iommus| {
        let (_, unit, store) = iommus.unit_of(function)?;
        unit.message(store, function, index).map_err(text)
    })
}

fn with<T>(act: impl FnOnce(&mut Iommus) -> Result<T, String>) -> Result<T, String> {
    match IOMMUS.lock().as_mut() {
        Some(iommus) => act(iommus),
        None => Err("the machine has no IOMMU, or firmware does not describe it (IVRS, DMAR)".to_string()),
    }
}

fn text(problem: Problem) -> String {
    problem.to_string()
}

fn domain_of(guest: u32) -> Result<DomainId, String> {
    let id = u16::try_from(guest).ok().and_then(|guest| guest.checked_add(FIRST_DOMAIN));
    id.map(DomainId).ok_or_else(|| "it has too high a number for an IOMMU's domain".to_string())
}

type Parts<'a> = (usize, &'a mut Unit<UnitRegisters>, &'a mut Store<TableWords>);

impl Iommus {
    /// The unit that isolates a function, and its tables.
    fn unit_of(&mut self, function: Bdf) -> Result<Parts<'_>, String> {
        let number = self.description.unit_of(function).ok_or("its transfers pass no IOMMU")?;
        let alias = self.description.alias_of(function);
        if alias != function {
            return Err(format!("its transfers carry the identifier of {alias}: it is behind a bridge to PCI"));
        }
        let unit = match self.units.get_mut(number).map(|driven| &mut driven.unit) {
            Some(Ok(unit)) => unit,
            Some(Err(problem)) => return Err(format!("its IOMMU isolates nothing: {problem}")),
            None => return Err("its IOMMU is not driven".to_string()),
        };
        if !unit.remaps_interrupts() {
            return Err("its IOMMU does not remap interrupts: it could send any".to_string());
        }
        Ok((number, unit, &mut self.store))
    }

    fn given_of(&self, guest: u32, unit: usize) -> Option<&Given> {
        self.given.iter().find(|given| (given.guest, given.unit) == (guest, unit))
    }

    fn stop(&mut self, number: usize, function: Bdf) -> Result<Result<(), Problem>, String> {
        match self.units.get_mut(number).map(|driven| &mut driven.unit) {
            Some(Ok(unit)) => Ok(unit.stop(&mut self.store, function)),
            _ => Err("its IOMMU has failed".to_string()),
        }
    }

    /// A function has left its guest's domain. The last one gives the tables back: an image that follows would not find
    /// a domain that no function is attached to.
    fn leave_domain(&mut self, number: usize, function: Bdf) -> Result<(), String> {
        let is_left = |given: &mut Given| {
            let was_its = given.unit == number && given.functions.contains(&function);
            given.functions.retain(|other| !was_its || *other != function);
            was_its && given.functions.is_empty()
        };
        let Self { units, store, given, .. } = self;
        for left in given.extract_if(.., is_left) {
            if let Ok(unit) = &mut units[number].unit {
                unit.free_domain(store, left.domain).map_err(text)?;
            }
        }
        Ok(())
    }

    fn create(&mut self, number: usize, guest: u32, memory: &[(u64, PhysRange)]) -> Result<GuestDomain, String> {
        let id = domain_of(guest)?;
        let Iommus { units, store, .. } = self;
        let Ok(unit) = &mut units[number].unit else { return Err("its IOMMU has failed".to_string()) };
        let mut domain = match unit.create_domain(store, id) {
            Err(Problem::OutOfMemory) => {
                self.add_memory()?;
                return self.create(number, guest, memory);
            }
            created => created.map_err(text)?,
        };
        for &(address, range) in memory {
            if let Err(problem) = self.map(number, &mut domain, address, range) {
                if let Ok(unit) = &mut self.units[number].unit {
                    unit.free_domain(&mut self.store, domain).map_err(text)?;
                }
                return Err(problem);
            }
        }
        Ok(domain)
    }

    fn map(&mut self, number: usize, domain: &mut GuestDomain, address: u64, range: PhysRange) -> Result<(), String> {
        loop {
            let Ok(unit) = &mut self.units[number].unit else { return Err("its IOMMU has failed".to_string()) };
            match unit.map(&mut self.store, domain, address, range.start(), range.bytes(), true) {
                // Refused whole.
                Err(Problem::OutOfMemory) => self.add_memory()?,
                mapped => return mapped.map_err(text),
            }
        }
    }

    fn open(&mut self, function: Bdf, count: u16) -> Result<Result<(), Problem>, String> {
        let (_, unit, store) = self.unit_of(function)?;
        Ok(unit.open_interrupts(store, function, count))
    }
}
