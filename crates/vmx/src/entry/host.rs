// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks of the host's state (sections 27.2.2 to 27.2.4). The host is a 64-bit one.

use vm::cpu::msr::check_pat;
use vm::vcpu::{cr0, cr4, efer};

use super::context::Context;
use super::registers::{CR4_CET, EFER_DEFINED};
use super::rule::{Rule, first};
use crate::control::Control;

const NOT_CANONICAL: &str = "is not canonical";

pub(super) fn check(context: &Context<'_>) -> Result<(), Rule> {
    registers(context)?;
    segments(context)?;
    address_space(context)
}

fn registers(context: &Context<'_>) -> Result<(), Rule> {
    let host = &context.state.host;
    let cpu = &context.bounds.capabilities;
    let has = |control| context.has(control);
    let long = if has(Control::HostAddressSpaceSize) { efer::LMA | efer::LME } else { 0 };
    let loads_counters = has(Control::ExitLoadPerfGlobalCtrl);
    let is_wrong_efer = host.efer & !EFER_DEFINED != 0 || host.efer & (efer::LMA | efer::LME) != long;
    let checks = [
        ("host CR0", "has a bit that VMX does not allow", !cpu.cr0.allows(host.cr0, 0)),
        ("host CR4", "has a bit that VMX does not allow", !cpu.cr4.allows(host.cr4, 0)),
        ("host CR4", "has CET set, and CR0.WP is clear", host.cr4 & CR4_CET != 0 && host.cr0 & cr0::WP == 0),
        ("host CR3", "has a bit beyond the CPU's physical addresses", !context.fits(host.cr3)),
        ("host IA32_SYSENTER_ESP", NOT_CANONICAL, !context.is_canonical(host.sysenter_esp)),
        ("host IA32_SYSENTER_EIP", NOT_CANONICAL, !context.is_canonical(host.sysenter_eip)),
        (
            "host IA32_PERF_GLOBAL_CTRL",
            "has a reserved bit",
            loads_counters && host.perf_global_ctrl & !context.bounds.perf_global_ctrl != 0,
        ),
        ("host IA32_PAT", "has a type that is reserved", has(Control::ExitLoadPat) && check_pat(host.pat).is_err()),
        (
            "host IA32_EFER",
            "has a reserved bit, or LMA or LME of another address-space size",
            has(Control::ExitLoadEfer) && is_wrong_efer,
        ),
    ];
    first("27.2.2", checks)
}

fn segments(context: &Context<'_>) -> Result<(), Rule> {
    const LOW_BITS: &str = "is of the local table or has a privilege level above 0";
    let host = &context.state.host;
    let is_low = |selector: u16| selector & 7 != 0;
    let is_narrow = !context.has(Control::HostAddressSpaceSize);
    let wild = |address| !context.is_canonical(address);
    let checks = [
        ("host ES", LOW_BITS, is_low(host.es)),
        ("host CS", LOW_BITS, is_low(host.cs)),
        ("host SS", LOW_BITS, is_low(host.ss)),
        ("host DS", LOW_BITS, is_low(host.ds)),
        ("host FS", LOW_BITS, is_low(host.fs)),
        ("host GS", LOW_BITS, is_low(host.gs)),
        ("host TR", LOW_BITS, is_low(host.tr)),
        ("host CS", "is 0", host.cs == 0),
        ("host TR", "is 0", host.tr == 0),
        ("host SS", "is 0, and the host is no 64-bit one", host.ss == 0 && is_narrow),
        ("host FS base", NOT_CANONICAL, wild(host.fs_base)),
        ("host GS base", NOT_CANONICAL, wild(host.gs_base)),
        ("host TR base", NOT_CANONICAL, wild(host.tr_base)),
        ("host GDTR base", NOT_CANONICAL, wild(host.gdtr_base)),
        ("host IDTR base", NOT_CANONICAL, wild(host.idtr_base)),
    ];
    first("27.2.3", checks)
}

/// The entry is made in IA-32e mode.
fn address_space(context: &Context<'_>) -> Result<(), Rule> {
    let host = &context.state.host;
    let is_64_bit = context.has(Control::HostAddressSpaceSize);
    let checks = [
        ("host address-space size", "is 0 on a host in IA-32e mode", !is_64_bit),
        ("host CR4", "has PAE clear, and the host is a 64-bit one", host.cr4 & cr4::PAE == 0),
        ("host RIP", NOT_CANONICAL, !context.is_canonical(host.rip)),
    ];
    first("27.2.4", checks)
}
