// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks of the event that an entry injects (section 27.2.1.3).

use vm::vcpu::Exception;

use super::context::Context;
use super::rule::{Rule, first};
use crate::control::Control;
use crate::event::{Interruption, kind};

const INFORMATION: &str = "VM-entry interruption information";
const MOST_INSTRUCTION_BYTES: u32 = 15;

pub(super) fn check(context: &Context<'_>) -> Result<(), Rule> {
    let Some(event) = context.event() else { return Ok(()) };
    let controls = &context.state.controls;
    let (has_code, code) = (event.has_error_code(), controls.error_code);
    let is_reserved = event.reserved() != 0 || event.has_unblocked_nmi();
    let checks = [
        (INFORMATION, "has a reserved type", !is_known(context, event)),
        (INFORMATION, "has a vector that its type does not have", !is_consistent(event)),
        (
            INFORMATION,
            "delivers an error code that the event does not have",
            has_code && !may_have_code(context, event),
        ),
        (INFORMATION, "delivers no error code, and the event has one", !has_code && must_have_code(context, event)),
        (INFORMATION, "has a reserved bit", is_reserved),
        // Bit 15 is of page faults by SGX; CPUs without it refuse that bit too.
        ("VM-entry exception error code", "has a reserved bit", has_code && code >> 16 != 0),
        ("VM-entry instruction length", "is that of no instruction", !has_length(context, event)),
    ];
    first("27.2.1.3", checks)
}

/// Type 1 is reserved; type 7 (other event) needs the monitor trap flag.
fn is_known(context: &Context<'_>, event: Interruption) -> bool {
    let has_trap_flag = context.bounds.capabilities.allowed_controls().has(Control::MonitorTrapFlag);
    match event.kind() {
        kind::INTERRUPT | kind::NMI | kind::EXCEPTION => true,
        kind::OTHER => has_trap_flag,
        other => kind::is_software(other),
    }
}

fn is_consistent(event: Interruption) -> bool {
    match event.kind() {
        kind::NMI => event.vector() == 2,
        kind::EXCEPTION => event.vector() < 32,
        kind::OTHER => event.vector() == 0,
        _ => true,
    }
}

/// A guest in real mode gets none. Some CPUs (IA32_VMX_BASIC, bit 56) let any exception have one.
fn may_have_code(context: &Context<'_>, event: Interruption) -> bool {
    let is_free = context.bounds.capabilities.basic.has_free_error_codes();
    let is_real = context.is_unrestricted() && !context.is_protected();
    event.kind() == kind::EXCEPTION && !is_real && (is_free || has_code(event.vector()))
}

fn must_have_code(context: &Context<'_>, event: Interruption) -> bool {
    !context.bounds.capabilities.basic.has_free_error_codes() && may_have_code(context, event)
}

fn has_code(vector: u8) -> bool {
    Exception::raised(vector, 0, 0).is_some_and(|exception| exception.error_code().is_some())
}

/// Software interrupts and exceptions have 1 to 15 bytes, on some CPUs 0 as well.
fn has_length(context: &Context<'_>, event: Interruption) -> bool {
    let least = u32::from(!context.bounds.capabilities.misc.injects_without_length());
    let length = context.state.controls.instruction_length;
    !kind::is_software(event.kind()) || (least..=MOST_INSTRUCTION_BYTES).contains(&length)
}
