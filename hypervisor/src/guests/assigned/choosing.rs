// SPDX-License-Identifier: MIT OR Apache-2.0
//! The functions that a guest is to have, and what speaks against one: a function states where its ranges are, and
//! must not be believed.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use ::pci::capability::Capability;
use ::pci::{Bdf, Selector};
use spin::Mutex;
use units::{PhysAddr, PhysRange};
use vm::devices::pci::Space;
use vm::devices::pci::assigned::Description;

use crate::guests::guest::{GUESTS, Guest};
use crate::guests::pci::{self, assigning};

/// Functions that guests have, and the guests' numbers.
static OWNERS: Mutex<Vec<(Bdf, u32)>> = Mutex::new(Vec::new());

/// A function that a guest is to have.
pub struct Chosen {
    /// The function.
    pub place: Bdf,
    /// Its capabilities.
    pub capabilities: Vec<Capability>,
    /// It is given away although it cannot be reset.
    pub without_reset: bool,
}

/// Chooses the functions that a guest's configuration names; they are the guest's from here on, until they are freed.
///
/// # Errors
/// Which one it cannot have, and why; it has none then.
pub fn choose(guest: &'static Guest) -> Result<Vec<Chosen>, String> {
    if guest.config.functions.is_empty() {
        return Ok(Vec::new());
    }
    pci::probe_everything();
    let mut chosen = Vec::new();
    for wanted in &guest.config.functions {
        match choose_one(guest, &wanted.selector, wanted.without_reset) {
            Ok(one) => chosen.push(one),
            Err(problem) => {
                free(guest.number);
                return Err(format!("device {:?}: {problem}", wanted.selector));
            }
        }
    }
    Ok(chosen)
}

fn choose_one(guest: &'static Guest, selector: &str, without_reset: bool) -> Result<Chosen, String> {
    let selector = Selector::parse(selector).map_err(|error| error.to_string())?;
    let chosen = pci::with_functions(|functions| {
        let function = selector.select(functions).map_err(|error| error.to_string())?;
        let capabilities = function.capabilities.iter().copied().collect();
        Ok::<_, String>(Chosen { place: function.place, capabilities, without_reset })
    })?;
    // Two guests that start at once must not both find the other functions of a group free.
    let mut owners = OWNERS.lock();
    assigning::check(chosen.place, &guest.config.name, |place| owner(&owners, place))?;
    add(&mut owners, chosen.place, guest.number)?;
    Ok(chosen)
}

/// A function is a guest's.
///
/// # Errors
/// It is one's already.
pub fn take(place: Bdf, guest: u32) -> Result<(), String> {
    add(&mut OWNERS.lock(), place, guest)
}

fn add(owners: &mut Vec<(Bdf, u32)>, place: Bdf, guest: u32) -> Result<(), String> {
    match owners.iter().find(|(owned, _)| *owned == place) {
        Some((_, owner)) if *owner == guest => Err(format!("{place} is named twice")),
        Some(_) => Err(format!("{place} is another guest's: stop that guest first")),
        None => {
            owners.push((place, guest));
            Ok(())
        }
    }
}

/// A guest's functions are nobody's.
pub fn free(guest: u32) {
    OWNERS.lock().retain(|(_, owner)| *owner != guest);
}

/// The guest that has a function, or is about to have it.
pub fn guest_of(place: Bdf) -> Option<&'static Guest> {
    owning(&OWNERS.lock(), place)
}

fn owner(owners: &[(Bdf, u32)], place: Bdf) -> Option<&'static str> {
    owning(owners, place).map(|guest| &*guest.config.name)
}

fn owning(owners: &[(Bdf, u32)], place: Bdf) -> Option<&'static Guest> {
    let owner = owners.iter().find(|(owned, _)| *owned == place).map(|(_, owner)| *owner)?;
    GUESTS.get()?.all.get(owner as usize)
}

/// Checks what the function has stated of itself.
///
/// # Errors
/// What speaks against it.
pub fn check(place: Bdf, description: &Description) -> Result<(), String> {
    if description.msi.is_none() && description.msix.is_none() {
        return Err("it has neither MSI nor MSI-X, and interrupts by INTx are not supported".to_string());
    }
    for (bar, range) in description.ranges.iter().enumerate() {
        let Some(range) = range else { continue };
        let bytes = range.bar.bytes();
        if range.address == 0 {
            return Err(format!("firmware has not placed its range {bar}"));
        }
        if range.bar.space() != Space::Memory {
            continue;
        }
        let memory = PhysRange::from_start(PhysAddr(range.address), bytes);
        let memory = memory.ok_or_else(|| format!("its range {bar} has an impossible address"))?;
        if let Some(taken) = pci::taken_by(place, memory) {
            return Err(format!("its range {bar} at {:#x} overlaps {taken}", range.address));
        }
    }
    Ok(())
}
