// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks of VM-execution controls (section 27.2.1.1), of reserved controls, and of controls that depend on others.

use super::context::Context;
use super::rule::{Check, Rule, first};
use crate::control::{Control, REQUIREMENTS, Word};
use crate::ept::{Eptp, MemoryType};

const SECTION: &str = "27.2.1.1";

pub(super) fn check(context: &Context<'_>) -> Result<(), Rule> {
    Word::ALL.into_iter().try_for_each(|word| reserved(context, word))?;
    requirements(context)?;
    first(SECTION, values(context))?;
    let bitmaps = bitmaps(context).into_iter().chain(pages(context));
    bitmaps.into_iter().try_for_each(|(control, page, item)| {
        let is_used = context.has(control);
        let misaligned = is_used && page & 0xfff != 0;
        let too_wide = is_used && !context.fits_in_vmcs(page);
        first(SECTION, [(item, "is not aligned to 4 KiB", misaligned), (item, TOO_WIDE, too_wide)])
    })?;
    first(SECTION, interrupts(context))?;
    first(SECTION, ept(context))
}

const TOO_WIDE: &str = "has a bit beyond the CPU's physical addresses";

/// The section that checks a word.
fn section(word: Word) -> &'static str {
    match word {
        Word::Exit => "27.2.1.2",
        Word::Entry => "27.2.1.3",
        Word::Pin | Word::Primary | Word::Secondary | Word::Tertiary => SECTION,
    }
}

/// Reserved bits. A word that is not activated is not checked.
fn reserved(context: &Context<'_>, word: Word) -> Result<(), Rule> {
    let is_checked = word.activated_by().is_none_or(|activator| context.has(activator));
    let (value, allowed) = (context.controls.word(word), context.bounds.capabilities.allowed(word));
    let item = word.name();
    let checks = [
        (item, "have a bit that the CPU does not allow to be 1", is_checked && value & !allowed.may != 0),
        (item, "lack a bit that the CPU requires to be 1", is_checked && allowed.must & !value != 0),
    ];
    first(section(word), checks)
}

fn requirements(context: &Context<'_>) -> Result<(), Rule> {
    match REQUIREMENTS.iter().find(|it| context.has(it.control) && !context.has(it.requires)) {
        Some(it) => {
            let section = section(it.control.word());
            Err(Rule { section, item: it.control.name(), violated: it.words })
        }
        None => Ok(()),
    }
}

fn values(context: &Context<'_>) -> [Check; 5] {
    let controls = &context.state.controls;
    let targets = u32::from(context.bounds.capabilities.misc.cr3_targets());
    let has = |control| context.has(control);
    let has_both_modes = has(Control::VirtualizeX2apicMode) && has(Control::VirtualizeApicAccesses);
    let has_threshold = has(Control::UseTprShadow) && !has(Control::VirtualInterruptDelivery);
    [
        ("CR3-target count", "is more than the CPU has", controls.cr3_target_count > targets),
        ("virtualize x2APIC mode", "is 1 together with \"virtualize APIC accesses\"", has_both_modes),
        ("TPR threshold", "has a reserved bit", has_threshold && controls.tpr_threshold >> 4 != 0),
        ("VPID", "is 0", has(Control::EnableVpid) && controls.vpid == 0),
        ("TSC multiplier", "is 0", has(Control::UseTscScaling) && controls.tsc_multiplier == 0),
    ]
}

/// A page that a control uses, and its name.
type Page = (Control, u64, &'static str);

fn bitmaps(context: &Context<'_>) -> [Page; 5] {
    let controls = &context.state.controls;
    [
        (Control::UseIoBitmaps, controls.io_bitmap_a, "address of I/O bitmap A"),
        (Control::UseIoBitmaps, controls.io_bitmap_b, "address of I/O bitmap B"),
        (Control::UseMsrBitmaps, controls.msr_bitmap, "MSR-bitmap address"),
        (Control::VmcsShadowing, controls.vmread_bitmap, "VMREAD-bitmap address"),
        (Control::VmcsShadowing, controls.vmwrite_bitmap, "VMWRITE-bitmap address"),
    ]
}

fn pages(context: &Context<'_>) -> [Page; 4] {
    let controls = &context.state.controls;
    let exception = Control::EptViolationVirtualizationException;
    [
        (Control::UseTprShadow, controls.virtual_apic, "virtual-APIC address"),
        (Control::VirtualizeApicAccesses, controls.apic_access, "APIC-access address"),
        (Control::EnablePml, controls.pml_address, "PML address"),
        (exception, controls.virtualization_exception, "virtualization-exception information address"),
    ]
}

fn interrupts(context: &Context<'_>) -> [Check; 5] {
    const DESCRIPTOR: &str = "posted-interrupt descriptor address";
    const TABLE: &str = "PID-pointer table address";
    let controls = &context.state.controls;
    let is_posted = context.has(Control::ProcessPostedInterrupts);
    let has_table = context.has(Control::IpiVirtualization);
    let (descriptor, table) = (controls.posted_interrupt_descriptor, controls.pid_pointer_table);
    let table_end = table.saturating_add(u64::from(controls.last_pid_pointer_index) * 8 + 7);
    [
        ("posted-interrupt notification vector", "is above 255", is_posted && controls.notification_vector > 0xff),
        (DESCRIPTOR, "is not aligned to 64 bytes", is_posted && descriptor & 0x3f != 0),
        (DESCRIPTOR, TOO_WIDE, is_posted && !context.fits_in_vmcs(descriptor)),
        (TABLE, "is not aligned to 8 bytes", has_table && table & 7 != 0),
        (TABLE, TOO_WIDE, has_table && !(context.fits_in_vmcs(table) && context.fits_in_vmcs(table_end))),
    ]
}

fn ept(context: &Context<'_>) -> [Check; 5] {
    let pointer = Eptp::from_bits(context.state.controls.ept_pointer);
    let cpu = context.bounds.capabilities.ept_vpid;
    let is_used = context.has(Control::EnableEpt);
    let has_type = match MemoryType::from_number(pointer.memory_type().into()) {
        Some(MemoryType::Uncacheable) => cpu.uncacheable(),
        Some(MemoryType::WriteBack) => cpu.write_back(),
        _ => false,
    };
    let has_levels = match pointer.levels_less_one() {
        3 => cpu.walks_4_levels(),
        4 => cpu.walks_5_levels(),
        _ => false,
    };
    let has_flags = cpu.accessed_and_dirty() || !pointer.accessed_and_dirty();
    let has_stacks = cpu.supervisor_shadow_stack() || !pointer.supervisor_shadow_stack();
    let is_reserved = pointer.reserved() != 0 || !context.fits(pointer.into_bits());
    [
        ("EPTP", "has a memory type that the CPU does not have", is_used && !has_type),
        ("EPTP", "has a length of page walks that the CPU does not have", is_used && !has_levels),
        ("EPTP", "enables accessed and dirty flags, which the CPU does not have", is_used && !has_flags),
        ("EPTP", "enables shadow-stack control, which the CPU does not have", is_used && !has_stacks),
        ("EPTP", "has a reserved bit", is_used && is_reserved),
    ]
}
