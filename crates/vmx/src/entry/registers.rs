// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks of the guest's control registers, debug registers and MSRs (section 27.3.1.1).

use vm::cpu::msr::check_pat;
use vm::vcpu::{cr0, cr4, efer};

use super::context::Context;
use super::rule::{Check, Rule, first};
use crate::control::Control;

const SECTION: &str = "27.3.1.1";
/// Bits of EFER that are defined on Intel's CPUs (SDM vol. 4, table 2-2).
pub(super) const EFER_DEFINED: u64 = efer::SCE | efer::LME | efer::LMA | efer::NXE;
/// Bits of IA32_DEBUGCTL that are defined (SDM vol. 3, section 18.4.1).
const DEBUG_CONTROL_DEFINED: u64 = 0xffc7;
const CR4_PCIDE: u64 = 1 << 17;
pub(super) const CR4_CET: u64 = 1 << 23;

pub(super) fn check(context: &Context<'_>) -> Result<(), Rule> {
    first(SECTION, control_registers(context))?;
    first(SECTION, long_mode(context))?;
    first(SECTION, others(context))
}

fn control_registers(context: &Context<'_>) -> [Check; 5] {
    let guest = &context.state.guest;
    let cpu = &context.bounds.capabilities;
    // An unrestricted guest may be in real mode, and in protected mode without paging.
    let exempt = if context.is_unrestricted() { cr0::PE | cr0::PG } else { 0 };
    let (is_paged, is_protected) = (guest.cr0 & cr0::PG != 0, context.is_protected());
    [
        ("CR0", "has a bit that VMX does not allow", !cpu.cr0.allows(guest.cr0, exempt)),
        ("CR0", "has PG set and PE clear", is_paged && !is_protected),
        ("CR4", "has a bit that VMX does not allow", !cpu.cr4.allows(guest.cr4, 0)),
        ("CR4", "has CET set, and CR0.WP is clear", guest.cr4 & CR4_CET != 0 && guest.cr0 & cr0::WP == 0),
        ("CR3", "has a bit beyond the CPU's physical addresses", !context.fits(guest.cr3)),
    ]
}

fn long_mode(context: &Context<'_>) -> [Check; 3] {
    let guest = &context.state.guest;
    let is_long = context.is_long();
    [
        ("CR0", "has PG clear in IA-32e mode", is_long && guest.cr0 & cr0::PG == 0),
        ("CR4", "has PAE clear in IA-32e mode", is_long && guest.cr4 & cr4::PAE == 0),
        ("CR4", "has PCIDE set outside IA-32e mode", !is_long && guest.cr4 & CR4_PCIDE != 0),
    ]
}

fn others(context: &Context<'_>) -> [Check; 9] {
    const NOT_CANONICAL: &str = "is not canonical";
    let guest = &context.state.guest;
    let has = |control| context.has(control);
    let loads_debug = has(Control::LoadDebugControls);
    let loads_efer = has(Control::EntryLoadEfer);
    let is_lma = guest.efer & efer::LMA != 0;
    let differs = is_lma != (guest.efer & efer::LME != 0) && guest.cr0 & cr0::PG != 0;
    let counters = guest.perf_global_ctrl & !context.bounds.perf_global_ctrl;
    [
        ("IA32_DEBUGCTL", "has a reserved bit", loads_debug && guest.debug_control & !DEBUG_CONTROL_DEFINED != 0),
        ("DR7", "has a bit above 31", loads_debug && guest.dr7 >> 32 != 0),
        ("IA32_SYSENTER_ESP", NOT_CANONICAL, !context.is_canonical(guest.sysenter_esp)),
        ("IA32_SYSENTER_EIP", NOT_CANONICAL, !context.is_canonical(guest.sysenter_eip)),
        ("IA32_PERF_GLOBAL_CTRL", "has a reserved bit", has(Control::EntryLoadPerfGlobalCtrl) && counters != 0),
        ("IA32_PAT", "has a type that is reserved", has(Control::EntryLoadPat) && check_pat(guest.pat).is_err()),
        ("IA32_EFER", "has a reserved bit", loads_efer && guest.efer & !EFER_DEFINED != 0),
        ("IA32_EFER", "has LMA unlike \"IA-32e mode guest\"", loads_efer && is_lma != context.is_long()),
        ("IA32_EFER", "has LME unlike LMA under paging", loads_efer && differs),
    ]
}
