// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks of the lists of MSRs (sections 27.2.1.2 and 27.2.1.3), and of controls for SMM.

use super::context::Context;
use super::rule::{Rule, first};
use crate::control::Control;

const BYTES_OF_AN_ENTRY: u64 = 16;

pub(super) fn check(context: &Context<'_>) -> Result<(), Rule> {
    let controls = &context.state.controls;
    let (exit, entry) = ("27.2.1.2", "27.2.1.3");
    list(context, exit, "VM-exit MSR-store address", controls.exit_msr_store, controls.exit_msr_store_count)?;
    list(context, exit, "VM-exit MSR-load address", controls.exit_msr_load, controls.exit_msr_load_count)?;
    list(context, entry, "VM-entry MSR-load address", controls.entry_msr_load, controls.entry_msr_load_count)?;
    let is_smm = context.has(Control::EntryToSmm);
    let is_monitor = context.has(Control::DeactivateDualMonitorTreatment);
    let checks = [
        ("entry to SMM", "is 1 outside SMM", is_smm),
        ("deactivate dual-monitor treatment", "is 1 outside SMM", is_monitor),
    ];
    first(entry, checks)
}

/// A list of `count` entries. An empty one is not checked.
fn list(
    context: &Context<'_>,
    section: &'static str,
    item: &'static str,
    address: u64,
    count: u32,
) -> Result<(), Rule> {
    let is_used = count != 0;
    let last = address.checked_add(u64::from(count) * BYTES_OF_AN_ENTRY).map(|end| end.wrapping_sub(1));
    let fits = context.fits_in_vmcs(address) && last.is_some_and(|last| context.fits_in_vmcs(last));
    let checks = [
        (item, "is not aligned to 16 bytes", is_used && address & 0xf != 0),
        (item, "or its list's end has a bit beyond the CPU's physical addresses", is_used && !fits),
    ];
    first(section, checks)
}
