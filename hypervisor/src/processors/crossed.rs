// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processors that come over from the image before, running, with their guests.

use alloc::string::String;
use core::sync::atomic::Ordering;

use ::update::trial::TrialPage;
use bringup::{ProcessorCell, SyncOutcome};

use super::{APIC_IDS, CELLS, LATER, Later, MAY_JOIN, VIRT, cell, changes, identifiers, prepare};
use crate::arch::percpu::BOOT_PROCESSOR;
use crate::arch::smp;
use crate::arch::virt::{Unavailable, Virt};
use crate::executive::Executive;
use crate::places;
use crate::restart::inherited;
use crate::start::{BOOT, prepare_processor};
use crate::update::adoption;

/// The processors that the image before hands over, by its numbers, as they run already: they are online, and others
/// come later.
///
/// # Errors
/// The firmware's tables tell of other processors, or there is no memory for one.
pub fn adopt_running(members: &[(u32, u32)]) -> Result<(), &'static str> {
    let (ids, _) = identifiers(members.first().map_or(0, |(_, apic_id)| *apic_id));
    if members.iter().any(|&(index, apic_id)| ids.get(index as usize) != Some(&apic_id)) {
        return Err("processors have other numbers here");
    }
    let ids = APIC_IDS.call_once(|| ids);
    CELLS.call_once(|| ids.iter().map(|_| ProcessorCell::new()).collect());
    places::prepare(ids.len());
    let sync = if inherited::clocks_agree() { SyncOutcome::Skipped } else { SyncOutcome::Unmeasured };
    for &(index, apic_id) in members {
        if !prepare_processor(index, apic_id) {
            return Err("no memory for what a processor has for itself");
        }
        if index != BOOT_PROCESSOR {
            smp::give_stack(index).map_err(|_| "no memory for a processor's stack")?;
            let _ = cell(index).is_some_and(|cell| cell.mark_online(sync));
        }
        if let Some(Ok(svm)) = VIRT.get() {
            svm.prepare(index).map_err(|_| "no memory for what runs guests on a processor")?;
        }
    }
    changes::open_all();
    MAY_JOIN.store(true, Ordering::Release);
    Ok(())
}

/// Those that are not online can come from now on. For an image that has taken over and has all memory.
pub fn expect_others() {
    let (Some((_, options)), Some(ids)) = (BOOT.get(), APIC_IDS.get()) else { return };
    if ids.len() > 1
        && let Some(crew) = prepare(ids, &[], options, 0)
    {
        Later::after(crew.plan(), ids).into_iter().for_each(|later| _ = LATER.call_once(|| later));
    }
}

/// Readies the guests that go on, for all processors, and rehearses their restoring.
///
/// # Errors
/// What is wrong with one.
pub fn adopt_guests(page: &TrialPage) -> Result<(), String> {
    match VIRT.get() {
        Some(Ok(svm)) => {
            adoption::adopt_guests(*svm)?;
            adoption::verify(*svm)?;
            adoption::carriers().try_for_each(|index| Executive::rehearse(*svm, index, page))
        }
        _ => Ok(()),
    }
}

/// The calling processor's guests are restored, and it goes on with them if all processors do.
pub fn take_over(index: u32, page: &'static TrialPage) -> ! {
    let virt = VIRT.get().copied().unwrap_or(Err(Unavailable::NoExtension));
    Executive::take_over(virt, index, page);
    changes::rest(virt)
}
