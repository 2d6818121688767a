// SPDX-License-Identifier: MIT OR Apache-2.0
//! Virtual functions (SR-IOV): the guest of the physical function asks for them by its virtual capability, and the boot
//! CPU has the hardware follow between its other work.
//!
//! ```text
//! a vCPU's exit ──► wanted ──► boot CPU: requester ids blocked ──► enabled ··· 100 ms ──► functions like others
//! fewer wanted, reset, released, ended ──► boot CPU: those that have one do not see it any more ──► disabled
//! ```
//!
//! The wanted state is compared with the actual one, so that nothing is lost, neither in an update: the next image
//! finds the virtual functions in the hardware as the state of the physical one states them.

use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use ::pci::Bdf;
use vm::devices::pci::Space as BarSpace;
use vm::devices::pci::assigned::{Phase, VirtualFunctions as Known};

use super::choosing::guest_of;
use super::functions::Function;
use super::{stopping, under_way};
use crate::guests::instance::Instance;
use crate::guests::slots::GUESTS;
use crate::guests::{events, pci};
use crate::kernel::iommu::guests as iommu;

/// A physical function with virtual ones, as its guest wants it.
struct Wanted {
    place: Bdf,
    number: u8,
    known: Known,
    /// Address and bytes of its own ranges.
    taken: Vec<(u64, u64)>,
    function: Function,
}

/// Has the hardware follow what guests want. For the boot CPU.
pub fn follow_all() {
    let wanted = all_wanted();
    for place in pci::sriov::physical_functions() {
        let number = wanted.iter().find(|wanted| wanted.place == place).map_or(0, |wanted| wanted.number.into());
        if pci::sriov::enabled(place).len() != number {
            revoke(place);
        }
    }
    for wanted in wanted.into_iter().filter(|wanted| pci::sriov::enabled(wanted.place).is_empty()) {
        if let Err(problem) = enable(&wanted) {
            let name = guest_of(wanted.place).map_or_else(|| "?".into(), |guest| guest.config.name.clone());
            log::warn!("guest {name}: PCI function {}: no virtual function is enabled: {problem}", wanted.place);
        }
    }
}

fn all_wanted() -> Vec<Wanted> {
    let functions = GUESTS.all().filter_map(|guest| guest.run::<Instance>()).flat_map(|run| run.functions().all());
    functions.filter_map(wanted_of).collect()
}

fn wanted_of(function: Function) -> Option<Wanted> {
    let mut locked = function.lock();
    let (phase, description) = (locked.phase(), locked.description());
    let physical = locked.physical();
    let (place, number, known) = (physical.place(), physical.virtual_wanted(), physical.known_virtual_functions());
    drop(locked);
    let ranges = description.ranges.iter().flatten().filter(|range| range.bar.space() == BarSpace::Memory);
    let taken = ranges.map(|range| (range.address, range.bar.bytes())).collect();
    (number > 0 && phase == Phase::Ready).then_some(Wanted { place, number, known, taken, function })
}

/// Enables virtual functions, or goes on with those that the image before has enabled.
fn enable(wanted: &Wanted) -> Result<(), String> {
    let &Wanted { place, number, known, .. } = wanted;
    pci::probe_everything();
    if pci::sriov::adopt(place, number, &known.sizes).is_ok() {
        pci::sriov::find(place);
        return Ok(());
    }
    let sizes = pci::sriov::enable(place, number, &wanted.taken).map_err(|problem| problem.to_string())?;
    let blocked = pci::sriov::enabled(place).into_iter().try_for_each(iommu::release);
    blocked.inspect_err(|_| pci::sriov::disable(place))?;
    wanted.function.lock().physical().set_known_virtual_functions(Known { sizes, ..known });
    under_way::note_enabled(place);
    log::info!("PCI function {place}: {number} virtual functions are enabled");
    Ok(())
}

/// Finds the virtual functions that may be accessed by now.
pub fn find_enabled() {
    for place in under_way::take_accessible() {
        let (found, all) = (pci::sriov::find(place), pci::sriov::enabled(place).len());
        if found < all {
            log::warn!("PCI function {place}: {} of its {all} virtual functions do not answer", all - found);
        }
    }
}

/// The virtual functions of a function are there no more. Guests that have one see it no more, and are named in events.
/// No function is locked.
pub fn revoke(place: Bdf) {
    let all = pci::sriov::enabled(place);
    if all.is_empty() {
        return;
    }
    for virtual_function in all.into_iter().filter(|virtual_function| guest_of(*virtual_function).is_some()) {
        let reason = format_args!("its physical function {place} was reset or released, or has disabled it");
        events::record(stopping::stop_for(virtual_function, &reason));
    }
    pci::sriov::disable(place);
    log::info!("PCI function {place}: its virtual functions are disabled");
}
