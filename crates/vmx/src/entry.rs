// SPDX-License-Identifier: MIT OR Apache-2.0
//! The checks that a VM entry makes (chapter 27), as far as the VMCS shows what they check.
//!
//! | section | checks | module |
//! |---|---|---|
//! | 27.2.1.1 | VM-execution controls | `execution` |
//! | 27.2.1.2, 27.2.1.3 | VM-exit and VM-entry controls, lists of MSRs | `lists` |
//! | 27.2.1.3 | the injected event | `injection` |
//! | 27.2.2 to 27.2.4 | host state | `host` |
//! | 27.3.1.1 | guest's control and debug registers, MSRs | `registers` |
//! | 27.3.1.2 | guest's segment registers | `segments`, `segments_8086` |
//! | 27.3.1.3, 27.3.1.4 | guest's descriptor tables, RIP, RFLAGS | `flow` |
//! | 27.3.1.5, 27.3.1.6 | activity, interruptibility, pending debug exceptions, PDPTEs | `activity` |
//!
//! A CPU may check in any order, so the first rule that is found here need not be the one that the CPU found. Left out:
//! what is in memory (lists of MSRs, the virtual-APIC page, PDPTEs without EPT, the VMCS behind the link pointer), and
//! features that no guest here has: SMM and its monitor, SGX, TDX, Intel PT, MPX, CET but for CR4, PKS, LBR
//! virtualization, user interrupts, VM functions, sub-page permissions, PASID translation, HLAT, FRED, LAM.

mod activity;
mod context;
mod execution;
mod flow;
mod host;
mod injection;
mod lists;
mod registers;
mod rule;
mod segments;
mod segments_8086;
mod state;

use context::Context;

pub use context::Bounds;
pub use rule::Rule;
pub use state::{ControlFields, GuestFields, GuestSegment, HostFields, State};

/// Checks a state as a VM entry does.
///
/// # Errors
/// The first [`Rule`] that is violated.
pub fn check(state: &State, bounds: &Bounds) -> Result<(), Rule> {
    check_controls(state, bounds)?;
    check_host(state, bounds)?;
    check_guest(state, bounds)
}

/// Checks the controls: VM-instruction error 7 if one is violated (section 27.2.1).
///
/// # Errors
/// The first [`Rule`] that is violated.
pub fn check_controls(state: &State, bounds: &Bounds) -> Result<(), Rule> {
    let context = &Context::new(state, bounds);
    execution::check(context)?;
    lists::check(context)?;
    injection::check(context)
}

/// Checks the host's state: VM-instruction error 8 if a rule is violated (sections 27.2.2 to 27.2.4).
///
/// # Errors
/// The first [`Rule`] that is violated.
pub fn check_host(state: &State, bounds: &Bounds) -> Result<(), Rule> {
    host::check(&Context::new(state, bounds))
}

/// Checks the guest's state: exit reason 33 if a rule is violated (section 27.3.1).
///
/// # Errors
/// The first [`Rule`] that is violated.
pub fn check_guest(state: &State, bounds: &Bounds) -> Result<(), Rule> {
    let context = &Context::new(state, bounds);
    registers::check(context)?;
    match context.is_virtual_8086() {
        true => segments_8086::check(context)?,
        false => segments::check(context)?,
    }
    segments::check_system(context)?;
    flow::check(context)?;
    activity::check(context)
}

#[cfg(test)]
mod tests;
