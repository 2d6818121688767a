// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks of the guest's state that is no register (section 27.3.1.5), and of its PDPTEs (section 27.3.1.6).

use vm::vcpu::{Rflags, SegmentName, cr0, cr4, vector};

use super::context::Context;
use super::rule::{Check, Rule, first};
use crate::control::Control;
use crate::event::{Interruption, kind};

const SECTION: &str = "27.3.1.5";
/// Activity states.
const ACTIVE: u32 = 0;
const HALT: u32 = 1;
const SHUTDOWN: u32 = 2;
const WAIT_FOR_SIPI: u32 = 3;
/// Bits of the interruptibility state.
const STI: u32 = 1 << 0;
const MOV_SS: u32 = 1 << 1;
const SMI: u32 = 1 << 2;
const NMI: u32 = 1 << 3;
const ENCLAVE: u32 = 1 << 4;
/// Bits of the pending debug exceptions.
const SINGLE_STEP: u64 = 1 << 14;
const ENABLED_BREAKPOINT: u64 = 1 << 12;
const RTM: u64 = 1 << 16;
const PENDING_DEFINED: u64 = 0xf | ENABLED_BREAKPOINT | SINGLE_STEP | RTM;
/// IA32_DEBUGCTL.BTF: single steps are of branches.
const BRANCH_STEP: u64 = 1 << 1;
const NO_LINK: u64 = u64::MAX;

pub(super) fn check(context: &Context<'_>) -> Result<(), Rule> {
    first(SECTION, activity(context))?;
    first(SECTION, interruptibility(context))?;
    first(SECTION, injected(context))?;
    first(SECTION, pending(context))?;
    first(SECTION, link(context))?;
    first("27.3.1.6", page_directories(context))
}

fn is_blocked(context: &Context<'_>, by: u32) -> bool {
    context.state.guest.interruptibility & by != 0
}

fn activity(context: &Context<'_>) -> [Check; 4] {
    const STATE: &str = "activity state";
    let activity = context.state.guest.activity;
    let misc = context.bounds.capabilities.misc;
    let is_known = match activity {
        ACTIVE => true,
        HALT => misc.has_halt(),
        SHUTDOWN => misc.has_shutdown(),
        WAIT_FOR_SIPI => misc.has_wait_for_sipi(),
        _ => false,
    };
    let stack = &context.state.segments[SegmentName::Ss as usize];
    let is_refused = context.event().is_some_and(|event| !is_delivered_in(activity, event));
    [
        (STATE, "is one that the CPU does not have", !is_known),
        (STATE, "is HLT, and SS has a DPL above 0", activity == HALT && stack.dpl() != 0),
        (STATE, "is not active, and STI or MOV SS blocks", activity != ACTIVE && is_blocked(context, STI | MOV_SS)),
        (STATE, "is one in which the injected event is blocked", is_refused),
    ]
}

/// Returns whether an event is delivered in an activity state.
fn is_delivered_in(activity: u32, event: Interruption) -> bool {
    let is_exception = |vector| event.kind() == kind::EXCEPTION && event.vector() == vector;
    match activity {
        ACTIVE => true,
        HALT => {
            matches!(event.kind(), kind::INTERRUPT | kind::NMI | kind::OTHER)
                || is_exception(vector::DB)
                || is_exception(vector::MC)
        }
        SHUTDOWN => event.kind() == kind::NMI || is_exception(vector::MC),
        _ => false,
    }
}

fn interruptibility(context: &Context<'_>) -> [Check; 5] {
    const STATE: &str = "interruptibility state";
    let state = context.state.guest.interruptibility;
    let is_disabled = context.state.guest.rflags & Rflags::INTERRUPT.bits() == 0;
    [
        (STATE, "has a reserved bit", state & !(STI | MOV_SS | SMI | NMI | ENCLAVE) != 0),
        (STATE, "has STI and MOV SS both block", state & (STI | MOV_SS) == STI | MOV_SS),
        (STATE, "has STI block, and RFLAGS.IF is clear", state & STI != 0 && is_disabled),
        (STATE, "has SMIs blocked outside SMM", state & SMI != 0),
        (STATE, "has an enclave interrupted, and no guest has SGX", state & ENCLAVE != 0),
    ]
}

/// Blocking that an injected event does not allow. Some CPUs allow STI to block when an NMI is injected: it is refused
/// here, as others do.
fn injected(context: &Context<'_>) -> [Check; 3] {
    const STATE: &str = "interruptibility state";
    let has = |kind| context.event().is_some_and(|event| event.kind() == kind);
    let is_virtual = context.has(Control::VirtualNmis);
    let (interrupt, nmi) = (has(kind::INTERRUPT), has(kind::NMI));
    [
        (STATE, "blocks the external interrupt that is injected", interrupt && is_blocked(context, STI | MOV_SS)),
        (STATE, "has STI or MOV SS block the NMI that is injected", nmi && is_blocked(context, STI | MOV_SS)),
        (STATE, "has virtual NMIs blocked, and one is injected", nmi && is_virtual && is_blocked(context, NMI)),
    ]
}

fn pending(context: &Context<'_>) -> [Check; 4] {
    const PENDING: &str = "pending debug exceptions";
    let guest = &context.state.guest;
    let pending = guest.pending_debug;
    let is_held = guest.activity == HALT || is_blocked(context, STI | MOV_SS);
    let is_stepping = guest.rflags & Rflags::TRAP.bits() != 0 && guest.debug_control & BRANCH_STEP == 0;
    let has_step = pending & SINGLE_STEP != 0;
    let is_transaction = pending & RTM != 0;
    let is_alone = pending == RTM | ENABLED_BREAKPOINT && !is_blocked(context, MOV_SS);
    [
        (PENDING, "have a reserved bit", pending & !PENDING_DEFINED != 0),
        (PENDING, "have BS clear, and the guest is stepped", is_held && is_stepping && !has_step),
        (PENDING, "have BS set, and the guest is not stepped", is_held && !is_stepping && has_step),
        (PENDING, "have RTM set beside others, or under MOV SS", is_transaction && !is_alone),
    ]
}

fn link(context: &Context<'_>) -> [Check; 2] {
    let link = context.state.guest.link_pointer;
    let is_linked = link != NO_LINK;
    [
        ("VMCS link pointer", "is not aligned to 4 KiB", is_linked && link & 0xfff != 0),
        (
            "VMCS link pointer",
            "has a bit beyond the CPU's physical addresses",
            is_linked && !context.fits_in_vmcs(link),
        ),
    ]
}

/// With EPT, the page-directory-pointer-table entries of PAE paging are in the VMCS.
fn page_directories(context: &Context<'_>) -> [Check; 4] {
    const RESERVED: &str = "is present and has a reserved bit";
    let guest = &context.state.guest;
    let is_paged = guest.cr0 & cr0::PG != 0 && guest.cr4 & cr4::PAE != 0 && !context.is_long();
    let is_checked = is_paged && context.has(Control::EnableEpt);
    // Present; bits 2:1, 8:5 and those beyond physical addresses are reserved.
    let is_bad = |entry: u64| is_checked && entry & 1 != 0 && (entry & 0x1e6 != 0 || !context.fits(entry));
    [
        ("PDPTE0", RESERVED, is_bad(guest.pdpte_0)),
        ("PDPTE1", RESERVED, is_bad(guest.pdpte_1)),
        ("PDPTE2", RESERVED, is_bad(guest.pdpte_2)),
        ("PDPTE3", RESERVED, is_bad(guest.pdpte_3)),
    ]
}
