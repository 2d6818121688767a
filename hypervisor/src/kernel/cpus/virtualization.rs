// SPDX-License-Identifier: MIT OR Apache-2.0
//! The extension that runs guests, found once for all CPUs, and the speculation mitigations and counters that it takes.

use alloc::vec::Vec;

use spin::Once;
use wire::Virtualization;

use super::threads;
use crate::arch::virt::{Unavailable, Virt};
use crate::arch::{speculation, switch_pages};
use crate::kernel::platform::options;
use crate::kernel::timeline::{self, Name};
use crate::kernel::trial_pages;

pub static VIRT: Once<Result<Virt, Unavailable>> = Once::new();
/// The virtualization extension that runs guests here, and its optional features by the manual's names.
pub static VIRTUALIZATION: Once<(Virtualization, Vec<&'static str>)> = Once::new();

/// The virtualization extension, where guests can run.
pub fn virt() -> Option<Virt> {
    VIRT.get().copied()?.ok()
}

/// Finds out what this CPU offers to run guests with.
pub fn detect_virtualization() {
    let _span = timeline::span(Name::Virtualization, 0);
    let mut counting = None;
    let detected = VIRT.call_once(|| {
        let virt = Virt::detect()?;
        assess_speculation();
        // Before any CPU is prepared for guests.
        counting = detect_counters(virt);
        Ok(virt)
    });
    match detected {
        Ok(virt) => {
            let mut names = virt.feature_names();
            names.extend(counting);
            log::info!("virtualization: {} with {}", virt.name(), names.join(", "));
            VIRTUALIZATION.call_once(|| (virt.kind(), names));
        }
        Err(unavailable) => log::error!("{unavailable}"),
    }
}

/// Finds out which speculation vulnerabilities this CPU has. Traps of an image on trial are the old image's.
pub fn assess_speculation() {
    let Some(options) = options() else { return };
    let may_probe = !trial_pages::is_on_trial();
    let assessment = speculation::detect(options.mitigations, threads::are_shared(), may_probe);
    let rows = || mitigations::TABLE.iter().zip(&assessment.statuses);
    for (row, status) in rows() {
        log::debug!("mitigations: {}: {status}", row.name);
    }
    let open = rows().filter(|(_, status)| status.is_vulnerable()).map(|(row, _)| row.name);
    let open = open.collect::<Vec<_>>().join(", ");
    let mode = if options.mitigations == mitigations::Mode::Off { "off" } else { "auto" };
    log::info!("mitigations: {mode}; vulnerable to {}", if open.is_empty() { "nothing known" } else { &open });
}

/// The CPU's counters, if guests' events are to be counted with them and can be: their name.
fn detect_counters(virt: Virt) -> Option<&'static str> {
    if options().is_none_or(|options| options.pmu != pmu::Choice::Hardware) {
        return None;
    }
    match virt.detect_counters() {
        Ok(found) => {
            log::info!("performance counters: {}, {} of them", found.name, found.counters);
            Some(found.name)
        }
        Err(unusable) => {
            log::warn!("option pmu=hardware: this CPU's counters cannot be used, {unusable}; pmu=soft is used");
            None
        }
    }
}

/// The calling CPU, on which no guest is loaded, is about to leave this image: nothing is left in it of any
/// guest, nor of what runs them.
pub fn clear_guest_state() {
    if let Some(Ok(virt)) = VIRT.get() {
        virt.disable();
    }
    switch_pages::reset_guest_registers();
}
