// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks the statements "as on hardware" of docs/conformance.md, with one line for each check:
//!
//! ```text
//! conform: nmi-blocking: ok
//! ```
//!
//! It runs on a bare machine too, where the lines are to be the same. `WRONG` comes with what was found instead;
//! `absent` is a feature that CPUID does not show.
#![no_std]
#![no_main]
// Reason: see the library's.
#![allow(unsafe_code)]

mod debug;
mod exceptions;
mod interrupts;
mod messages;
mod nmis;
mod pins;
mod tables;

use tiny::answers::Wrong;
use tiny::{Verdict, apic, cpu, print};

tiny::main!(main);

type Check = (&'static str, fn() -> Result<(), Wrong>);

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
    ("ioapic-entry", pins::entry_is_kept),
    ("ioapic-edge", pins::edge),
    ("ioapic-level", pins::level),
    ("logical-destination", messages::logical_destination),
    ("start-up", messages::start_up),
    ("error-status", messages::error_status),
    ("accessed-and-dirty", tables::accessed_and_dirty),
    ("no-execute", tables::no_execute),
    ("double-fault", tables::double_fault),
];

/// Those of features that not every bare machine has, with the feature's bit in ECX of CPUID 1. The last one leaves
/// x2APIC mode on.
const OPTIONAL: &[(u32, Check)] =
    &[(1 << 24, ("tsc-deadline", messages::tsc_deadline)), (1 << 21, ("x2apic", messages::x2apic))];

/// Leaves no local APIC.
const LAST: Check = ("disabled-apic-is-hidden", interrupts::disabled_apic_is_hidden);

fn main(_: &str) -> Verdict {
    apic::enable_in_memory();
    let mut is_right = CHECKS.iter().fold(true, |right, check| holds(check) & right);
    for (bit, check) in OPTIONAL {
        if cpu::cpuid(1)[2] & bit == 0 {
            print!("conform: {}: absent\n", check.0);
        } else {
            is_right &= holds(check);
        }
    }
    Verdict::of(holds(&LAST) & is_right)
}

fn holds(&(name, check): &Check) -> bool {
    let result = check();
    match &result {
        Ok(()) => print!("conform: {name}: ok\n"),
        Err(wrong) => print!("conform: {name}: WRONG: {wrong}\n"),
    }
    result.is_ok()
}
