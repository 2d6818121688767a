// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reason why VMRUN refuses a control block (exit code VMEXIT_INVALID): the first of its consistency checks that
//! the block fails (section 15.5.1, "Canonicalization and Consistency Checks"; sections 15.20 and 15.25.4).

use vm::cpu::msr::check_pat;
use vm::vcpu::{cr0, cr4, efer};

use crate::intercept::Misc2;
use crate::vmcb::{EventInjection, Vmcb, event_type};

const HIGH_HALF: u64 = 0xffff_ffff << 32;
/// CR0: cache disable and not write-through; the second does not go without the first.
const CR0_CD: u64 = 1 << 30;
const CR0_NW: u64 = 1 << 29;
/// Attributes of a code segment: 64-bit, and its default size, which are not both set.
const LONG: u16 = 1 << 9;
const DEFAULT_SIZE: u16 = 1 << 10;
/// EFER bits that revision 3.42 of the manual reserves (section 3.1.7).
const EFER_RESERVED: u64 = !0x0036_fd01;
/// CR4 bits that it reserves (section 3.1.3).
const CR4_RESERVED: u64 = !0x00f7_1fff;
/// CR3: as wide as addresses can be.
const CR3_RESERVED: u64 = 0xfff0_0000_0000_0000;

/// The reason that can be found in the block, if there is one.
pub fn reason(vmcb: &Vmcb) -> Option<&'static str> {
    let (control, save) = (&vmcb.control, &vmcb.save);
    let is_long = save.efer & efer::LME != 0 && save.cr0 & cr0::PG != 0;
    let code = save.segments[1].attributes;
    let checks = [
        ("EFER.SVME is clear", save.efer & efer::SVME == 0),
        ("CR0.NW is set without CR0.CD", save.cr0 & CR0_NW != 0 && save.cr0 & CR0_CD == 0),
        ("CR0 has a bit above 31", save.cr0 & HIGH_HALF != 0),
        ("CR3 has a reserved bit", save.cr3 & CR3_RESERVED != 0),
        ("CR4 has a reserved bit", save.cr4 & CR4_RESERVED != 0),
        ("DR6 has a bit above 31", save.dr6 & HIGH_HALF != 0),
        ("DR7 has a bit above 31", save.dr7 & HIGH_HALF != 0),
        ("EFER has a reserved bit", save.efer & EFER_RESERVED != 0),
        ("long mode without CR4.PAE", is_long && save.cr4 & cr4::PAE == 0),
        ("long mode without CR0.PE", is_long && save.cr0 & cr0::PE == 0),
        ("its code segment is of 64 and of 32 bits", is_long && code & LONG != 0 && code & DEFAULT_SIZE != 0),
        ("VMRUN is not intercepted", !control.intercept_misc2.contains(Misc2::VMRUN)),
        ("its event cannot be injected", !can_be_injected(control.event_injection)),
        ("its ASID is 0", control.asid == 0),
        ("PAT has a memory type that does not exist", check_pat(save.g_pat).is_err()),
    ];
    checks.into_iter().find(|(_, fails)| *fails).map(|(reason, _)| reason)
}

/// Section 15.20: reserved types, and exceptions that are none, are refused.
fn can_be_injected(event: EventInjection) -> bool {
    let is_known = match event.kind() {
        event_type::INTERRUPT | event_type::NMI | event_type::SOFTWARE_INTERRUPT => true,
        event_type::EXCEPTION => event.vector() < 32 && event.vector() != 2,
        _ => false,
    };
    !event.is_valid() || is_known
}

#[cfg(test)]
#[path = "refusal_tests.rs"]
mod tests;
