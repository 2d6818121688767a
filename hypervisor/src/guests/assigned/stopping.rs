// SPDX-License-Identifier: MIT OR Apache-2.0
//! Functions that are stopped: their IOMMU refuses too many of their requests, or their reset has failed.
//!
//! A guest's function vanishes for the guest, as one does that was pulled out: it reads as ones, and its driver knows
//! what that means. Showing it on, without its transfers, would leave the driver to wait for them. The guest gets it
//! back, reset, when it starts again.

use alloc::format;
use alloc::string::String;
use core::fmt;

use ::pci::line::Unserved;
use ::pci::{Bdf, reset};
use iommu::Storm;
use vm::devices::outputs::Outputs;
use vm::devices::pci::Endpoint;
use vm::devices::pci::assigned::Assigned;
use wire::EventKind;

use super::choosing::guest_of;
use super::function::HostFunction;
use super::functions::Function;
use crate::arch::{percpu, timer};
use crate::guests::guest::Guest;
use crate::guests::instance::Instance;
use crate::guests::pci;
use crate::kernel::iommu::guests as iommu_guests;

/// Stops a function that storms, as [`stop_for`] does.
pub fn stop(Storm { source, refused, ticks }: Storm) -> EventKind {
    let ms = timer::ticks_to_ns(ticks) / 1_000_000;
    stop_for(source, &format_args!("its IOMMU has refused {refused} or more of its requests within {ms} ms"))
}

/// Stops a function: its guest ends the interrupts of its line and does not serve it.
pub fn stop_unserved(place: Bdf) -> EventKind {
    let ends = Unserved::LIMIT;
    stop_for(place, &format_args!("its INTx line was still asserted at {ends} ends of its interrupt in a row"))
}

/// Stops a function: it masters the bus no more, its IOMMU refuses it everything and logs as little as it can of that,
/// and a guest that has it does not see it any more. Returns the event. No function is locked.
pub fn stop_for(place: Bdf, reason: &dyn fmt::Display) -> EventKind {
    let guest = guest_of(place);
    let run = guest.as_ref().and_then(|guest| guest.run::<Instance>());
    if let Some(run) = &run {
        let its = run.functions().all().into_iter().find(|function| function.lock().physical().place() == place);
        its.iter().for_each(|function| vanish(run, function));
    }
    pci::with_config(|config| reset::stop_mastering(config, place));
    if let Err(problem) = iommu_guests::stop(place) {
        log::error!("PCI function {place}: {problem}");
        // It may reach the guest's memory for good.
        run.iter().for_each(|run| run.machine.memory().keep_for_good());
    }
    report(place, guest.as_deref(), reason)
}

/// The guest sees the function no more, and its interrupts are closed.
fn vanish(run: &Instance, function: &Function) {
    change(run, function, |function, outputs| function.vanish(outputs));
    run.machine.place_functions();
}

/// Changes a function of a guest that runs. The guest's vCPUs get what comes of it.
pub(super) fn change(
    run: &Instance,
    function: &Function,
    act: impl FnOnce(&mut Endpoint<Assigned<HostFunction>>, &mut Outputs),
) {
    let mut notify = |vcpu: usize, was_notified: bool| {
        if !was_notified {
            percpu::kick(run.guest.cpu_to_notify(vcpu));
        }
    };
    run.machine.with_function(&**function, &mut notify, act);
}

/// Logs why, and what to do; returns the event.
fn report(place: Bdf, guest: Option<&Guest>, reason: &dyn fmt::Display) -> EventKind {
    let reason = format!("{reason}; {}", hint(guest));
    let name = guest.map(|guest| guest.config.name.clone());
    match &name {
        Some(name) => log::warn!("guest {name}: PCI function {place} is stopped: {reason}"),
        None => log::warn!("PCI function {place}, which no guest has, is stopped: {reason}"),
    }
    EventKind::FunctionStopped { place: numbers(place), guest: name, reason }
}

fn hint(guest: Option<&Guest>) -> String {
    match guest {
        Some(guest) => format!("`baton vm reset {}` resets the function, too", guest.config.name),
        None => "it stays so until a guest starts that has it".into(),
    }
}

fn numbers(place: Bdf) -> (u16, u8, u8, u8) {
    (place.segment, place.bus, place.device(), place.function())
}
