// SPDX-License-Identifier: MIT OR Apache-2.0
//! A blackout that lasts until the interrupt of a guest's PCI function is pending (`selftest=update:wait:interrupt`),
//! so that a transfer that is under way when guests stop ends while all CPUs are between two images.
//!
//! The new image waits, and only reads: its reads of the interrupt request registers also show in an emulator's trace
//! where the blackout is.

use boot::self_tests::SelfTest;
use spin::Once;

use crate::arch::device_vectors::VECTORS;
use crate::arch::{apic, cpu, timer};
use crate::kernel::faults::is_asked_for;
use crate::kernel::inherited;

/// The longest wait: a transfer of QEMU's `edu` takes 100 ms, and the emulator's threads may wait for cores.
const MOST_US: u64 = 400_000;
/// The interval at which a CPU reads its registers.
const INTERVAL_US: u64 = 1_000;

/// The first interrupt that was found pending.
static PENDING: Once<Pending> = Once::new();

struct Pending {
    cpu: u32,
    vector: u8,
    /// The time from the CPU's arrival until it found it, in ticks.
    waited: u64,
}

/// The CPU `index` has arrived in the blackout: waits until a function's interrupt is pending at any CPU.
pub fn await_one(index: u32) {
    if !is_asked_for(SelfTest::UpdateWaitForInterrupt) {
        return;
    }
    let (start, most) = (cpu::tsc(), timer::us_to_ticks(MOST_US));
    let waited = || cpu::tsc().saturating_sub(start);
    while PENDING.get().is_none() && waited() < most {
        match apic::pending(VECTORS) {
            Some(vector) => {
                PENDING.call_once(|| Pending { cpu: index, vector, waited: waited() });
            }
            None => timer::delay_us(INTERVAL_US),
        }
    }
}

/// Logs what CPUs waited for. Once this image has taken over.
pub fn report() {
    if !is_asked_for(SelfTest::UpdateWaitForInterrupt) {
        return;
    }
    let generation = inherited::generation();
    match PENDING.get() {
        Some(Pending { cpu, vector, waited }) => {
            let us = timer::ticks_to_ns(*waited) / 1000;
            log::info!(
                "self-test: generation {generation}: vector {vector:#x} was pending at cpu{cpu} after {us} us in the \
                 blackout"
            );
        }
        None => log::info!("self-test: generation {generation}: no vector was pending in the blackout"),
    }
}
