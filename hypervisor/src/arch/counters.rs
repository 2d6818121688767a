// SPDX-License-Identifier: MIT OR Apache-2.0
//! The CPU's performance counters, where guests' events are counted with them ([`pmu::amd`]): searched for once,
//! readied on each CPU. An overflow interrupts as the timer does: the CPU that holds a vCPU checks what is
//! due.

use pmu::amd::number::{GLOBAL_CLEAR, GLOBAL_STATUS, LEGACY_COUNTER, LEGACY_SELECT, SELECT};
use pmu::amd::{Amd, Description, LEGACY_COUNTERS, Side, Unusable, probe};
use pmu::{Registers, Source};
use spin::Once;

use super::{apic, cpu};

/// Of the widest CPU that there can be: 16 selects and counters.
const LAST_COUNTER: u32 = SELECT + 31;
const LAST_LEGACY_COUNTER: u32 = LEGACY_COUNTER + LEGACY_COUNTERS as u32 - 1;
/// Length of the probe's wait in PAUSE instructions: some ten microseconds at least.
const PAUSES_PER_PROBE: u32 = 1000;

/// The calling CPU's.
const REGISTERS: Registers = Registers { read, write };

static DESCRIPTION: Once<Description> = Once::new();

fn is_counters(number: u32) -> bool {
    matches!(number, GLOBAL_STATUS..=GLOBAL_CLEAR | LEGACY_SELECT..=LAST_LEGACY_COUNTER | SELECT..=LAST_COUNTER)
}

fn read(number: u32) -> u64 {
    if !is_counters(number) {
        return 0;
    }
    // SAFETY: it belongs to the counters, and reading it has no side effect. One that this CPU lacks is an
    // exception.
    unsafe { cpu::read_msr(number) }
}

fn write(number: u32, value: u64) {
    if is_counters(number) {
        // SAFETY: it belongs to the counters, which count, interrupt by a vector that is expected, and touch no memory.
        unsafe { cpu::write_msr(number, value) };
    }
}

/// Probes whether this CPU's counters can be used, and has them used if so. For the boot CPU, with the virtualization
/// extension enabled.
///
/// # Errors
/// [`Unusable`]: why not.
pub fn detect() -> Result<&'static Description, Unusable> {
    let description = Description::detect(|leaf| {
        let found = cpu::cpuid(leaf, 0);
        [found.eax, found.ebx, found.ecx, found.edx]
    })?;
    let wait = || (0..PAUSES_PER_PROBE).for_each(|_| cpu::pause());
    probe(&mut { REGISTERS }, &description, wait)?;
    Ok(DESCRIPTION.call_once(|| description))
}

/// Returns where guests' counters come from.
pub fn source() -> Source {
    DESCRIPTION.get().map_or(Source::Soft, |description| Source::Amd(REGISTERS, *description))
}

/// Before a guest has the calling CPU's: all stopped, and an overflow interrupts. Nothing where they are not
/// used.
pub fn prepare_this_cpu() {
    if let Some(description) = DESCRIPTION.get() {
        Amd::new(REGISTERS, *description, Side::Guest).reset();
        apic::let_counters_interrupt(true);
    }
}

/// No guest has any of the calling CPU's.
pub fn leave_this_cpu() {
    if DESCRIPTION.get().is_some() {
        apic::let_counters_interrupt(false);
    }
}
