// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPUs that are handed over from the image before, running, with their guests.

use bringup::SyncOutcome;

use super::bring_up::{prepare, prepare_cpu};
use super::changes::open_all;
use super::crews::{LATER, Later};
use super::entry;
use super::table::{APIC_IDS, cell, identifiers, set_identifiers};
use super::virtualization::VIRT;
use crate::arch::percpu::BOOT_CPU;
use crate::arch::smp;
use crate::kernel::platform::options;
use crate::kernel::{inherited, places};

/// The CPUs that the image before hands over, by its numbers, as they run already: they are online, and others
/// come later.
///
/// # Errors
/// The firmware's tables list other CPUs, or there is no memory for one.
pub fn adopt_running(members: &[(u32, u32)]) -> Result<(), &'static str> {
    let (ids, _) = identifiers(members.first().map_or(0, |(_, apic_id)| *apic_id));
    if members.iter().any(|&(index, apic_id)| ids.get(index as usize) != Some(&apic_id)) {
        return Err("CPUs have other numbers here");
    }
    let ids = set_identifiers(ids);
    places::prepare(ids.len());
    let sync = if inherited::clocks_agree() { SyncOutcome::Skipped } else { SyncOutcome::Unmeasured };
    for &(index, apic_id) in members {
        if !prepare_cpu(index, apic_id) {
            return Err("no memory for what a CPU has for itself");
        }
        if index != BOOT_CPU {
            smp::give_stack(index).map_err(|_| "no memory for a CPU's stack")?;
            let _ = cell(index).is_some_and(|cell| cell.mark_online(sync));
        }
        if let Some(Ok(virt)) = VIRT.get() {
            virt.prepare(index).map_err(|_| "no memory for what runs guests on a CPU")?;
        }
    }
    open_all();
    entry::let_in();
    Ok(())
}

/// Lets the CPUs that are not online come online from now on. For an image that has taken over and has all memory.
pub fn expect_others() {
    let (Some(options), Some(ids)) = (options(), APIC_IDS.get()) else { return };
    if ids.len() > 1
        && let Some(crew) = prepare(ids, &[], options, 0)
    {
        Later::after(crew.plan(), ids).into_iter().for_each(|later| _ = LATER.call_once(|| later));
    }
}
