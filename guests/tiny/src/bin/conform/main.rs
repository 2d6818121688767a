// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks the statements "as on hardware" of docs/conformance.md, with one line for each check:
//!
//! ```text
//! conform: nmi-blocking: ok
//! ```
//!
//! It runs on a bare machine too, where the lines are to be the same. `WRONG` comes with what was found instead.
#![no_std]
#![no_main]
// Reason: see the library's.
#![allow(unsafe_code)]

mod debug;
mod exceptions;
mod interrupts;
mod nmis;

use tiny::answers::Wrong;
use tiny::{Verdict, apic, print};

tiny::main!(main);

type Check = (&'static str, fn() -> Result<(), Wrong>);

/// In this order: the last one leaves no local APIC.
const CHECKS: &[Check] = &[
    ("divide-error", exceptions::divide_error),
    ("invalid-opcode", exceptions::invalid_opcode),
    ("breakpoint", exceptions::breakpoint),
    ("selector-error-code", exceptions::selector_error_code),
    ("page-fault-error-code", exceptions::page_fault_error_code),
    ("xcr0-reserved", exceptions::xcr0_reserved),
    ("osxsave-follows-cr4", exceptions::osxsave_follows_cr4),
    ("single-step", debug::single_step),
    ("single-step-over-cpuid", debug::single_step_over_cpuid),
    ("data-breakpoint", debug::data_breakpoint),
    ("instruction-breakpoint", debug::instruction_breakpoint),
    ("nmi-once", nmis::once),
    ("nmi-blocking", nmis::blocking),
    ("interrupt-shadow", interrupts::shadow),
    ("priority-order", interrupts::priority_order),
    ("task-priority", interrupts::task_priority),
    ("in-service-until-eoi", interrupts::in_service_until_eoi),
    ("timer-one-shot", interrupts::timer_one_shot),
    ("timer-periodic", interrupts::timer_periodic),
    ("timer-masked", interrupts::timer_masked),
    ("halt-wakes", interrupts::halt_wakes),
    ("disabled-apic-is-hidden", interrupts::disabled_apic_is_hidden),
];

fn main(_: &str) -> Verdict {
    apic::enable_in_memory();
    Verdict::of(CHECKS.iter().fold(true, |right, &(name, check)| {
        let result = check();
        match &result {
            Ok(()) => print!("conform: {name}: ok\n"),
            Err(wrong) => print!("conform: {name}: WRONG: {wrong}\n"),
        }
        result.is_ok() & right
    }))
}
