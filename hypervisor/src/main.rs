// SPDX-License-Identifier: MIT OR Apache-2.0
//! Baton: a hypervisor that can be replaced while its guests run.
//!
//! The boot, in order: console → memory map → frames → own page tables → interrupts and clock → CPUs → bundle → guests.
//! Work that need not happen before the first guest instruction happens after it.
//!
//! An image that replaces another one takes the same way, and skips what the other has handed over
//! ([`lifecycle::restart`]).
#![no_std]
#![no_main]

extern crate alloc;

mod arch;
mod control;
mod guests;
mod kernel;
mod lifecycle;

use arch::boot::Source;
use arch::fault;
use arch::hooks::{self, Hooks};
use lifecycle::{end, panic, start, update};

hooks::provide!(Hooks {
    main,
    exception: panic::exception,
    machine_check: panic::machine_check,
    stop_cpu: end::stop_this_cpu,
    claims_nmi: || fault::point!(lifecycle::faults::logging::takes_nmi(), else false) || update::takes_nmi(),
    #[cfg(feature = "faults")]
    log_self_test: lifecycle::faults::logging::interrupted,
});

/// The ways into a CPU's loop.
static KERNEL_HOOKS: kernel::hooks::Hooks =
    kernel::hooks::Hooks { run: control::cpu_loop::run, take_over: control::cpu_loop::take_over };

/// First safe code: on the boot stack, on the boot page tables, one CPU, interrupts off. The image's first
/// instruction was at `entered_at`, in ticks of the time stamp counter.
fn main(source: Source, entered_at: u64) -> ! {
    kernel::hooks::provide(&KERNEL_HOOKS);
    kernel::timeline::start(entered_at);
    // Apart from the other way: its large values would take half of the boot stack.
    if let Source::Judge { record, page } = source {
        update::on_trial::prepare(record, page, entered_at);
    }
    start::start(source, entered_at)
}
