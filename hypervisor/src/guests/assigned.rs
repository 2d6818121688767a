// SPDX-License-Identifier: MIT OR Apache-2.0
//! Physical PCI functions that guests have: chosen and checked when a guest starts, its own while it runs, free when it
//! has ended.
//!
//! ```text
//! start ──► choose ──► reset ──► read ──► IOMMU: the guest's memory ──► on the guest's bus
//! end ──► interrupts closed ──► IOMMU: nothing ──► the guest's memory is given back
//! ```
//!
//! One can come while the guest runs, and go ([`plugging`]).
//!
//! | module | content |
//! |---|---|
//! | `choosing` | the functions that a guest is to have; reasons against one |
//! | `serials` | choice among several disks by serial number |
//! | `resetting` | the reset before a guest has one |
//! | [`guest_resets`], [`under_way`] | resets that its guest asks for; those that have begun |
//! | [`function`] | a function's requests to the host |
//! | [`functions`] | the functions of a run |
//! | [`plugging`] | functions that come and go while their guest runs |
//! | [`lines`] | INTx lines of functions without MSI |
//! | `signals` | its MSI and MSI-X registers |
//! | [`routes`] | which interrupt a CPU's vector is |
//! | [`stopping`] | functions that are refused too often |
//! | `approving` | how many virtual functions a guest may enable |
//! | [`virtual_functions`] | virtual functions, which the guest of the physical one enables (SR-IOV) |

mod approving;
mod choosing;
pub mod function;
pub mod functions;
pub mod guest_resets;
pub mod lines;
pub mod plugging;
mod resetting;
pub mod routes;
mod serials;
mod signals;
pub mod stopping;
pub mod under_way;
pub mod virtual_functions;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use ::pci::Bdf;
use units::{PhysAddr, PhysRange};
use vm::devices::outputs::Outputs;
use vm::devices::pci::Slot;
use vm::devices::pci::assigned::{Assigned, Description, HostIdentity, Phase, Physical as _};
use vm::machine::Machine;
use vm::platform::layout;

use self::choosing::Chosen;
use self::function::HostFunction;
use self::functions::{Function, Functions};
use self::lines::Line;
use self::resetting::Reset;
use self::routes::Owner;
use self::signals::Signals;
use crate::arch::guest_memory::GuestRam;
use crate::arch::virt::Space;
use crate::guests::guest::Guest;
use crate::kernel::iommu::guests as iommu;

/// A function that a guest is about to have: it was reset, and what it states of itself was checked.
struct Prepared {
    place: Bdf,
    /// The device of the guest's bus in which it will be.
    device: u8,
    description: Description,
    physical: HostFunction,
}

/// The guest that has a function, or is about to have it.
pub fn holder(place: Bdf) -> Option<Arc<Guest>> {
    choosing::guest_of(place)
}

/// Gives a guest that starts the functions that it is assigned. `revoke` is called for each before it is reset: its
/// virtual functions end.
///
/// # Errors
/// Which one it cannot have, and why; it has none then.
pub fn give(
    guest: &Arc<Guest>,
    space: &Arc<Space>,
    machine: &Machine<GuestRam>,
    revoke: fn(Bdf),
) -> Result<Functions, String> {
    let functions = Functions::new();
    for chosen in choosing::choose(guest)? {
        let place = chosen.place;
        revoke(place);
        let renewed = resetting::renew(place, &chosen.capabilities, &chosen.reset);
        let given = renewed.and_then(|()| give_one(guest, space, machine, &functions, &chosen));
        if let Err(problem) = given {
            if !withdraw_all(guest, &functions) {
                machine.memory().keep_for_good();
            }
            return Err(format!("PCI function {place}: {problem}"));
        }
    }
    Ok(functions)
}

/// Gives a guest a function that was reset; returns the device in which it is.
fn give_one(
    guest: &Arc<Guest>,
    space: &Arc<Space>,
    machine: &Machine<GuestRam>,
    functions: &Functions,
    chosen: &Chosen,
) -> Result<u8, String> {
    let device = machine.bus().free_device().ok_or("the guest's bus is full")?;
    let prepared = prepare(guest, space, device, chosen)?;
    functions.add(device, || connect(guest, machine, prepared))?;
    Ok(device)
}

/// Reads what a function states of itself. The guest reaches nothing of it yet.
fn prepare(guest: &Arc<Guest>, space: &Arc<Space>, device: u8, chosen: &Chosen) -> Result<Prepared, String> {
    let place = chosen.place;
    let signals = Signals::new(owner(guest, device), &chosen.capabilities);
    let mut physical = HostFunction::new(place, guest.clone(), space.clone(), signals);
    let line = chosen.gsi.map(|gsi| Line::claim(place, gsi, owner(guest, device))).transpose()?;
    let pin = line.as_ref().map(|_| layout::line_of(device));
    let mut description = Description::probe(place, &mut physical, pin).map_err(|problem| format!("{problem}"))?;
    // One that states no pin has none.
    physical.signals().set_line(line.filter(|_| description.line.is_some()));
    description.has_reset = description.has_express && matches!(chosen.reset, Reset::Alone(_));
    if chosen.virtual_functions > 0 {
        let known = approving::known(place, &description, chosen.virtual_functions)?;
        physical.set_known_virtual_functions(known);
        description.virtual_functions = chosen.virtual_functions;
    }
    choosing::check(place, &description)?;
    Ok(Prepared { place, device, description, physical })
}

/// Lets a function reach the guest's memory, and puts it on the guest's bus.
fn connect(guest: &Arc<Guest>, machine: &Machine<GuestRam>, prepared: Prepared) -> Result<Function, String> {
    let Prepared { place, device, description, physical } = prepared;
    iommu::attach(guest.number, place, &memory_of(machine))?;
    let put = put(machine, device, description, physical);
    match &put {
        Ok(_) => log::info!("guest {}: has PCI function {place}, as device {device}", guest.config.name),
        // Its IOMMU does not answer: the function may reach the guest's memory for good.
        Err(_) if iommu::detach(place).is_err() => machine.memory().keep_for_good(),
        Err(_) => {}
    }
    put
}

/// Puts a function on the guest's bus.
fn put(
    machine: &Machine<GuestRam>,
    device: u8,
    description: Description,
    mut physical: HostFunction,
) -> Result<Function, String> {
    physical.open(&description)?;
    let function = Assigned::in_slot(Slot::of_device(device), description, physical);
    let function = function.ok_or("a guest can have no such function")?;
    machine.bus().plug(function).map_err(|_| "the guest's bus is full, or another function has its line".into())
}

fn owner(guest: &Guest, device: u8) -> Owner {
    Owner { guest: guest.number as u16, function: device.into() }
}

fn memory_of(machine: &Machine<GuestRam>) -> Vec<(u64, PhysRange)> {
    let pieces = machine.memory().pieces().into_iter();
    pieces
        .filter_map(|piece| Some((piece.gpa, PhysRange::from_start(PhysAddr(piece.physical), piece.bytes)?)))
        .collect()
}

/// A guest's functions as the image before hands them over, each as the bytes of its packed state. The hardware is not
/// accessed.
///
/// # Errors
/// The problem of one.
pub fn adopt<'a>(
    guest: &Arc<Guest>,
    space: &Arc<Space>,
    machine: &Machine<GuestRam>,
    packed: impl Iterator<Item = &'a [u8]>,
) -> Result<Functions, String> {
    let functions = Functions::new();
    for (by_order, packed) in (1..).zip(packed) {
        let cut_off = "its state is cut off";
        let identity = HostIdentity::from_saved(packed).ok_or(cut_off)?;
        let device = HostIdentity::device_number(packed).filter(|device| *device != 0).unwrap_or(by_order);
        let description = Description::from_saved(packed).map_err(|error| error.to_string())?;
        choosing::take(identity.place, guest.number)?;
        let register = |register: u8| (register != 0).then_some(u16::from(register));
        let signals = Signals::at(owner(guest, device), register(identity.msi), register(identity.msix));
        let physical = HostFunction::new(identity.place, guest.clone(), space.clone(), signals);
        functions.add(device, || put(machine, device, description, physical))?;
    }
    Ok(functions)
}

/// Resumes a guest's functions once this image has adopted the IOMMUs, and carries out earlier requests of the guest
/// about their interrupts.
pub fn resume(guest: &Guest, machine: &Machine<GuestRam>, functions: &Functions) {
    for function in functions.all() {
        let mut function = function.lock();
        if function.physical().virtual_wanted() > 0 {
            // This image does not know them yet.
            under_way::ask();
        }
        let place = function.physical().place();
        if function.phase() == Phase::Resetting {
            // Its guest had asked for it, and the image before has not begun.
            function.physical().reset();
        }
        // One that was stopped is not attached, and stays so.
        let is_gone = function.phase() == Phase::Gone;
        let attached = iommu::adopt(guest.number, place).and_then(|is_attached| match is_attached {
            true => Ok(false),
            false if is_gone => Ok(false),
            false => iommu::attach(guest.number, place, &memory_of(machine)).map(|()| true),
        });
        let is_new = attached.unwrap_or_else(|problem| {
            log::error!("guest {}: PCI function {place}: {problem}", guest.config.name);
            false
        });
        if function.physical().signals().take_behind() || is_new {
            let interrupts = function.interrupts();
            let vectors = function.open_vectors();
            function.physical().signals().reopen(place, interrupts, &vectors);
        }
    }
}

/// Withdraws all of a guest's functions: those that it has vanish for it and reach nothing any more, those chosen for
/// it are free. Returns whether the guest's memory may be released.
pub fn withdraw_all(guest: &Guest, functions: &Functions) -> bool {
    let mut is_safe = true;
    for function in functions.close() {
        let mut function = function.lock();
        // No notification: the guest is gone, or is about to be.
        function.vanish(&mut Outputs::new());
        let physical = function.physical();
        if let Err(problem) = physical.close() {
            log::error!("guest {}: PCI function {}: {problem}", guest.config.name, physical.place());
            is_safe = false;
        }
    }
    if let Err(problem) = iommu::free(guest.number) {
        log::error!("guest {}: {problem}", guest.config.name);
    }
    choosing::free(guest.number);
    is_safe
}
