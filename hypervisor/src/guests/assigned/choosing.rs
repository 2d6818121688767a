// SPDX-License-Identifier: MIT OR Apache-2.0
//! The functions that a guest is to have, and what speaks against one: a function states where its ranges are, and
//! must not be believed.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use ::pci::capability::Capability;
use ::pci::reset::bus::BusReset;
use ::pci::{Bdf, Function, SelectError, Selector, reset};
use bundle::AssignedConfig;
use spin::Mutex;
use units::{PhysAddr, PhysRange};
use vm::devices::pci::Space;
use vm::devices::pci::assigned::Description;

use super::resetting::{self, Reset};
use super::serials;
use crate::guests::guest::Guest;
use crate::guests::pci::{self, assignments, groups};
use crate::guests::slots::GUESTS;

/// Functions that guests have, or that are reset with one that a guest has.
static OWNERS: Mutex<Vec<Owned>> = Mutex::new(Vec::new());

/// A function that no other guest can have.
#[derive(Clone, Copy)]
struct Owned {
    place: Bdf,
    /// The guest's number.
    guest: u32,
    /// The guest has it; else it is only reset with another one. An update keeps what guests have alone: a reset is not
    /// under way then.
    is_given: bool,
    /// The function with which it is reset; itself, if that is it.
    with: Bdf,
    /// It is on its way to a guest that runs: that guest's end meanwhile does not free it.
    is_arriving: bool,
}

/// A function that a guest is to have.
pub struct Chosen {
    /// The function.
    pub place: Bdf,
    /// Its capabilities.
    pub capabilities: Vec<Capability>,
    /// How it is reset before.
    pub reset: Reset,
    /// How many virtual functions of it the guest may enable.
    pub virtual_functions: u8,
    /// The global system interrupt of its line, where it is to have one.
    pub gsi: Option<u32>,
}

/// Chooses the functions that a guest is assigned; they are the guest's from here on, until they are freed.
///
/// # Errors
/// Which one it cannot have, and why; it has none then.
pub fn choose(guest: &Guest) -> Result<Vec<Chosen>, String> {
    learn_serials(guest);
    let mut chosen = Vec::new();
    for wanted in &assignments::functions_of(guest) {
        match choose_one(guest, &wanted.selector, wanted.without_reset) {
            Ok(one) => chosen.push(Chosen { virtual_functions: wanted.virtual_functions, ..one }),
            Err(problem) => {
                free(guest.number);
                return Err(format!("device {:?}: {problem}", wanted.selector));
            }
        }
    }
    Ok(chosen)
}

/// Chooses a function for a guest that runs: it is the guest's from here on, until it is [freed](free_one).
///
/// # Errors
/// The reason why the guest cannot have it.
pub fn choose_arriving(guest: &Guest, place: Bdf, without_reset: bool) -> Result<Chosen, String> {
    let chosen = choose_one(guest, &place.to_string(), without_reset)?;
    set_arriving(place, true);
    Ok(Chosen { virtual_functions: assignments::approved_virtual_functions(place, guest), ..chosen })
}

/// A function that was on its way to a guest is there.
pub fn note_arrived(place: Bdf) {
    set_arriving(place, false);
}

fn set_arriving(place: Bdf, is_arriving: bool) {
    OWNERS.lock().iter_mut().filter(|owned| owned.with == place).for_each(|owned| owned.is_arriving = is_arriving);
}

fn choose_one(guest: &Guest, selector: &str, without_reset: bool) -> Result<Chosen, String> {
    if guest.config.assured_bytes.is_some() {
        let reason = "the guest has memory on demand, of which a function may reach what is not there: give it none";
        return Err(reason.to_string());
    }
    let selector = Selector::parse(selector).map_err(|error| error.to_string())?;
    // Two guests that start at once must not both find the other functions of a group, or of a bus, free.
    let mut owners = OWNERS.lock();
    let (place, capabilities, bus) = pci::with_functions(|functions| {
        let function = selector.select(functions).map_err(|error| refusal(&selector, &error, functions))?;
        let capabilities: Vec<Capability> = function.capabilities.iter().copied().collect();
        Ok::<_, String>((function.place, capabilities, BusReset::of(functions, function.place)))
    })?;
    let alone = pci::with_config(|config| reset::way(config, place, &capabilities));
    let named = named(&owners);
    groups::check(place, &guest.config.name, |place| owner(&named, place))?;
    add(&mut owners, place, guest.number)?;
    let name = &*guest.config.name;
    let other = |place| owner(&named, place).filter(|owner| *owner != name);
    let reset = match resetting::plan(alone, bus, without_reset, other) {
        Ok(reset) => reset,
        Err(problem) => {
            owners.retain(|owned| owned.with != place);
            return Err(problem);
        }
    };
    if let Reset::Bus(bus) = &reset {
        bus.functions().for_each(|other| claim(&mut owners, other, guest.number, place));
    }
    Ok(Chosen { place, capabilities, reset, virtual_functions: 0, gsi: assignments::gsi_of(place) })
}

fn refusal(selector: &Selector, error: &SelectError, functions: &[Function]) -> String {
    match selector {
        Selector::Serial(_) => format!("{error}; known are: {}", serials::known(functions)),
        _ => error.to_string(),
    }
}

/// Reads serial numbers, if the guest's configuration names any. The controllers without a known one are asked: all,
/// since two may have the same, but for those that guests have.
fn learn_serials(guest: &Guest) {
    let is_serial = |function: &AssignedConfig| matches!(Selector::parse(&function.selector), Ok(Selector::Serial(_)));
    if !guest.config.functions.iter().any(is_serial) {
        return;
    }
    pci::probe_everything();
    // No other guest gets a controller while it is asked.
    let owners = OWNERS.lock();
    serials::ask_all(|place| owners.iter().any(|owned| owned.place == place));
}

/// A function is a guest's.
///
/// # Errors
/// It is one's already.
pub fn take(place: Bdf, guest: u32) -> Result<(), String> {
    add(&mut OWNERS.lock(), place, guest)
}

fn add(owners: &mut Vec<Owned>, place: Bdf, guest: u32) -> Result<(), String> {
    match owners.iter_mut().find(|owned| owned.place == place) {
        Some(owned) if owned.guest != guest => Err(format!("{place} is another guest's: stop that guest first")),
        Some(owned) if owned.is_given => Err(format!("{place} is named twice")),
        Some(owned) => {
            (owned.is_given, owned.with) = (true, place);
            Ok(())
        }
        None => {
            owners.push(Owned { place, guest, is_given: true, with: place, is_arriving: false });
            Ok(())
        }
    }
}

/// A function is reset with one that the guest has: no other guest can have it.
fn claim(owners: &mut Vec<Owned>, place: Bdf, guest: u32, with: Bdf) {
    if !owners.iter().any(|owned| owned.place == place) {
        owners.push(Owned { place, guest, is_given: false, with, is_arriving: false });
    }
}

/// Frees a guest's functions.
pub fn free(guest: u32) {
    OWNERS.lock().retain(|owned| owned.guest != guest || owned.is_arriving);
}

/// A function is its guest's no more, nor are those that were reset with it.
pub fn free_one(place: Bdf, guest: u32) {
    OWNERS.lock().retain(|owned| (owned.with, owned.guest) != (place, guest));
}

/// The guest that has a function, or is about to have it.
pub fn guest_of(place: Bdf) -> Option<Arc<Guest>> {
    owning(&OWNERS.lock(), |owned| owned.place == place && owned.is_given)
}

/// Returns the guest that has a function, or has another one that is reset with it.
fn owner(owners: &[(Bdf, String)], place: Bdf) -> Option<&str> {
    owners.iter().find(|(owned, _)| *owned == place).map(|(_, name)| name.as_str())
}

/// Each function that a guest has or claims, with the guest's name.
fn named(owners: &[Owned]) -> Vec<(Bdf, String)> {
    let name = |owned: &Owned| Some((owned.place, GUESTS.at(owned.guest)?.config.name.clone()));
    owners.iter().filter_map(name).collect()
}

fn owning(owners: &[Owned], is_meant: impl Fn(&Owned) -> bool) -> Option<Arc<Guest>> {
    let owned = owners.iter().find(|owned| is_meant(owned))?;
    GUESTS.at(owned.guest)
}

/// Checks what the function has stated of itself.
///
/// # Errors
/// The reason against it.
pub fn check(place: Bdf, description: &Description) -> Result<(), String> {
    if description.msi.is_none() && description.msix.is_none() && description.line.is_none() {
        return Err(assignments::NO_INTERRUPT.to_string());
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
