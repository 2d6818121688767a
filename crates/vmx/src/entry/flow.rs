// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks of the guest's descriptor tables (section 27.3.1.3), RIP and RFLAGS (section 27.3.1.4).

use vm::vcpu::{AccessRights, Rflags, SegmentName};

use super::context::Context;
use super::rule::{Rule, first};
use crate::event::kind;

/// Reserved bits of RFLAGS that are 0: 3, 5, 15, and those from 22 on.
const RFLAGS_RESERVED: u64 = 1 << 3 | 1 << 5 | 1 << 15 | u64::MAX << 22;
/// The reserved bit that is 1.
const RFLAGS_ONE: u64 = 1 << 1;

pub(super) fn check(context: &Context<'_>) -> Result<(), Rule> {
    tables(context)?;
    pointer(context)?;
    flags(context)
}

fn tables(context: &Context<'_>) -> Result<(), Rule> {
    let guest = &context.state.guest;
    let checks = [
        ("GDTR", "has a base that is not canonical", !context.is_canonical(guest.gdtr_base)),
        ("IDTR", "has a base that is not canonical", !context.is_canonical(guest.idtr_base)),
        ("GDTR", "has a limit above FFFFH", guest.gdtr_limit > 0xffff),
        ("IDTR", "has a limit above FFFFH", guest.idtr_limit > 0xffff),
    ];
    first("27.3.1.3", checks)
}

fn pointer(context: &Context<'_>) -> Result<(), Rule> {
    let rip = context.state.guest.rip;
    let code = &context.state.segments[SegmentName::Cs as usize];
    let is_64_bit = context.is_long() && code.has(AccessRights::LONG);
    // Not canonical: the bits beyond the linear width are equal, whatever the highest one within.
    let beyond = (rip as i64).checked_shr(context.bounds.linear_bits.into()).unwrap_or(0);
    let checks = [
        ("RIP", "has a bit above 31 outside 64-bit mode", !is_64_bit && rip >> 32 != 0),
        ("RIP", "has bits beyond the CPU's linear addresses that differ", is_64_bit && !matches!(beyond, 0 | -1)),
    ];
    first("27.3.1.4", checks)
}

fn flags(context: &Context<'_>) -> Result<(), Rule> {
    let rflags = context.state.guest.rflags;
    let is_interrupt = context.event().is_some_and(|event| event.kind() == kind::INTERRUPT);
    let may_be_8086 = !context.is_long() && context.is_protected();
    let is_disabled = rflags & Rflags::INTERRUPT.bits() == 0;
    let checks = [
        ("RFLAGS", "has a reserved bit", rflags & RFLAGS_RESERVED != 0 || rflags & RFLAGS_ONE == 0),
        ("RFLAGS", "has VM set in IA-32e mode or in real mode", context.is_virtual_8086() && !may_be_8086),
        ("RFLAGS", "has IF clear, and an external interrupt is injected", is_interrupt && is_disabled),
    ];
    first("27.3.1.4", checks)
}
