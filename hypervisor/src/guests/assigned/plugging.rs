// SPDX-License-Identifier: MIT OR Apache-2.0
//! Functions that come and go while their guest runs. Only the control channel, between two turns of its CPU, gives and
//! takes them, so that no exit of a guest waits for it.
//!
//! ```text
//! begin ──► choose ──► reset, in steps ··· finish ──► read ──► IOMMU ──► bus ──► the guest is to check the device
//! ask  ──► the guest is asked to eject the device … the guest ejects it ──► take
//! take ──► off the bus ──► interrupts closed ──► IOMMU: nothing ··· each vCPU has flushed its TLB ──► free
//! ```
//!
//! Until each vCPU has flushed its TLB, one may still reach the function's registers: no other guest gets it before.

use alloc::string::{String, ToString as _};
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;

use ::pci::Bdf;
use vm::devices::hot_plug::{DEVICES, HotPlug};
use vm::devices::outputs::Outputs;
use vm::devices::pci::Slot;
use vm::platform::acpi;

use super::choosing::Chosen;
use super::functions::Function;
use super::{choosing, give_one, resetting, under_way, virtual_functions};
use crate::arch::percpu;
use crate::guests::guest::Guest;
use crate::guests::instance::Instance;

/// A function that is withdrawn from a guest that runs, and must not have another owner yet.
pub struct Departure {
    /// The guest that had it.
    pub guest: Arc<Guest>,
    /// The function.
    pub place: Bdf,
    /// The guest has not ejected it.
    pub is_forced: bool,
    run: Weak<Instance>,
    /// It is dropped here, and not where a vCPU or an interrupt has reached it last.
    function: Function,
    /// The change of the guest's address space that has to be known to all its vCPUs.
    change: u64,
}

/// A function that is being reset for a guest that runs. No other guest can have it.
pub struct Arrival {
    run: Arc<Instance>,
    chosen: Chosen,
    is_ready: bool,
}

impl Arrival {
    /// Begins: the function is chosen, and is being reset. One that is reset with its bus is already; the calling CPU
    /// has waited for that.
    ///
    /// # Errors
    /// The reason why the guest cannot have it. Nothing has changed.
    pub fn begin(run: &Arc<Instance>, place: Bdf, without_reset: bool) -> Result<Self, String> {
        if !has_hotplug_controller(run) {
            let reason = "an image without hot-plug has started the guest: its ACPI tables describe no controller";
            return Err(reason.to_string());
        }
        let chosen = choosing::choose_arriving(&run.guest, place, without_reset)?;
        if chosen.gsi.is_some() && !acpi::describe_lines(run.machine.memory()) {
            choosing::free_one(place, run.guest.number);
            let reason = "an image without INTx has started the guest: its ACPI tables describe no lines";
            return Err(reason.to_string());
        }
        virtual_functions::revoke(place);
        match resetting::begin(place, &chosen.capabilities, &chosen.reset) {
            Ok(procedure) => {
                let is_ready = procedure.is_none();
                procedure.into_iter().for_each(under_way::add);
                Ok(Self { run: run.clone(), chosen, is_ready })
            }
            Err(problem) => {
                choosing::free_one(place, run.guest.number);
                Err(problem)
            }
        }
    }

    /// The function.
    pub fn place(&self) -> Bdf {
        self.chosen.place
    }

    /// The guest.
    pub fn guest(&self) -> &Arc<Guest> {
        &self.run.guest
    }

    /// Returns whether the function needs no more steps of a reset.
    pub fn is_ready(&self) -> bool {
        self.is_ready
    }

    /// Gives the function to the guest; `reset` is its reset's result.
    ///
    /// # Errors
    /// The reason why the guest cannot have it. Nothing has changed.
    pub fn finish(self, reset: Result<(), String>) -> Result<(), String> {
        let Self { run, chosen, .. } = self;
        let (guest, place) = (&run.guest, chosen.place);
        let given = reset.and_then(|()| give_one(guest, run.space(), &run.machine, run.functions(), &chosen));
        match given {
            Ok(device) => {
                choosing::note_arrived(place);
                notify(&run, |controller, outputs| controller.check(device, outputs));
                Ok(())
            }
            Err(problem) => {
                choosing::free_one(place, guest.number);
                Err(problem)
            }
        }
    }
}

/// Asks a guest that runs to eject a function that it has; again, if it was asked before.
///
/// # Errors
/// The guest cannot be asked.
pub fn ask(run: &Instance, place: Bdf) -> Result<(), String> {
    if !has_hotplug_controller(run) {
        return Err("an image without hot-plug has started the guest, which cannot be asked to eject it".to_string());
    }
    let device = find(run, place).ok_or("the guest does not have it any more")?;
    notify(run, |controller, outputs| controller.request(device, outputs));
    Ok(())
}

/// Takes a function from a guest that runs, whatever the guest does with it. `None` if it does not have it any more.
pub fn take_by_force(run: &Arc<Instance>, place: Bdf) -> Option<Departure> {
    let device = find(run, place)?;
    let departure = take(run, device, true);
    notify(run, |controller, outputs| controller.remove(device, outputs));
    departure
}

/// Takes the functions that guests have ejected since this was called last.
pub fn take_ejected(guest: &Arc<Guest>) -> Vec<Departure> {
    if !guest.take_has_ejected() {
        return Vec::new();
    }
    let Some(run) = guest.run::<Instance>() else { return Vec::new() };
    let ejected = run.machine.bus().hot_plug().lock().take_ejected();
    let devices = DEVICES.filter(|device| ejected >> device & 1 != 0);
    devices.filter_map(|device| take(&run, device, false)).collect()
}

/// Returns whether a function that leaves is free now.
pub fn has_left(departure: &Departure) -> bool {
    let is_known = departure.run.upgrade().is_none_or(|run| run.all_know_change(departure.change));
    let has_left = is_known && Arc::strong_count(&departure.function) == 1;
    if has_left {
        choosing::free_one(departure.place, departure.guest.number);
    }
    has_left
}

/// Returns whether the guest can be notified of functions: its ACPI tables describe the controller.
fn has_hotplug_controller(run: &Instance) -> bool {
    acpi::describe_hot_plug(run.machine.memory())
}

/// The device in which a guest has a function.
fn find(run: &Instance, place: Bdf) -> Option<u8> {
    let of = |device: &u8| run.functions().get(u16::from(*device));
    let mut devices = DEVICES;
    devices.find(|device| of(device).is_some_and(|function| function.lock().physical().place() == place))
}

/// Takes the function in a device off the guest's bus, and from its memory.
fn take(run: &Arc<Instance>, device: u8, is_forced: bool) -> Option<Departure> {
    let disconnected = run.functions().remove(device, |function| (disconnect(run, device, &function), function));
    let ((place, change), function) = disconnected?;
    Some(Departure { guest: run.guest.clone(), place, is_forced, run: Arc::downgrade(run), function, change })
}

/// Returns the function, and the change of the guest's address space by which its registers have left that.
fn disconnect(run: &Instance, device: u8, function: &Function) -> (Bdf, u64) {
    // No notification: the guest has ejected it, or is to check its bus.
    function.lock().vanish(&mut Outputs::new());
    run.machine.bus().unplug(Slot::of_device(device));
    let mut function = function.lock();
    let (place, left) = (function.physical().place(), function.physical().leave());
    if let Err(problem) = left {
        log::error!("guest {}: PCI function {place}: {problem}", run.guest.config.name);
        run.machine.memory().keep_for_good();
    }
    (place, run.space_changes())
}

/// Changes the controller, and interrupts the guest.
fn notify(run: &Instance, change: impl FnOnce(&mut HotPlug, &mut Outputs)) {
    let mut notify = |vcpu: usize, was_notified: bool| {
        if !was_notified {
            percpu::kick(run.guest.cpu_to_notify(vcpu));
        }
    };
    run.machine.with_function(run.machine.bus().hot_plug(), &mut notify, change);
}
