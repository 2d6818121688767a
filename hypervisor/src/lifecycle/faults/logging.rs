// SPDX-License-Identifier: MIT OR Apache-2.0
//! The log tried out (`selftest=log`): records from every context, and a storm of them with NMIs in between.

use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use boot::self_tests::SelfTest;
use klog::Memory as _;

use crate::arch::percpu::{BOOT_CPU, PerCpu};
use crate::arch::trap::vector;
use crate::arch::{apic, cpu};
use crate::kernel::console::log::ring;
use crate::kernel::{cpus, faults};

/// Records that each CPU writes in the storm at least.
const STORM_RECORDS: u32 = 3000;
/// Every so many records the boot CPU sends every other an NMI.
const NMI_EVERY: u32 = 100;
const NMI_PAUSES: u32 = 10_000;
/// Polls of the awaited condition, before it is given up.
const PATIENCE: u32 = 100_000_000;

/// NMIs are records, not failures.
static TAKES_NMI: AtomicBool = AtomicBool::new(false);
static NMIS: AtomicU32 = AtomicU32::new(0);
static STORMING: AtomicU32 = AtomicU32::new(0);
static IS_OVER: AtomicBool = AtomicBool::new(false);

/// Logs while it is shown.
struct Talkative;

impl fmt::Display for Talkative {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        log::info!("log self-test: while a record is formatted");
        f.write_str("log self-test: and that record")
    }
}

/// Returns whether an NMI is one of the log self-test's; if so, it is logged.
pub fn takes_nmi() -> bool {
    let is_taken = TAKES_NMI.load(Ordering::Acquire);
    if is_taken {
        log::info!("log self-test: from NMI {}", NMIS.fetch_add(1, Ordering::AcqRel));
    }
    is_taken
}

/// The log self-test's interrupt.
pub fn interrupted() {
    log::info!("log self-test: from an interrupt");
}

/// Before other CPUs are up: a record from each context.
pub fn contexts() {
    log::info!("log self-test: from the boot");
    log::info!("{Talkative}");
    apic::send(apic::id(), vector::LOG_SELF_TEST);
    cpu::take_pending_interrupts();
    TAKES_NMI.store(true, Ordering::Release);
    apic::send_nmi(apic::id());
    (0..PATIENCE).any(|_| NMIS.load(Ordering::Acquire) > 0);
    TAKES_NMI.store(false, Ordering::Release);
}

/// A CPU is about to enter its loop.
pub fn before_the_loop() {
    if faults::is_asked_for(SelfTest::Log) {
        storm(PerCpu::current().index);
    }
}

/// All CPUs log at once as fast as they can; the boot CPU has NMIs interrupt the others' records.
fn storm(me: u32) {
    if me == BOOT_CPU {
        TAKES_NMI.store(true, Ordering::Release);
    }
    STORMING.fetch_add(1, Ordering::AcqRel);
    (0..PATIENCE).any(|_| STORMING.load(Ordering::Acquire) >= cpus::online().len() as u32);
    if me == BOOT_CPU {
        raise_storm(me);
    } else {
        let is_over = |number| number >= STORM_RECORDS && IS_OVER.load(Ordering::Acquire);
        (0..PATIENCE).take_while(|&number| !is_over(number)).for_each(|number| log_in_storm(number, me));
    }
    let written = ring(me as usize).map_or(0, |ring| ring.written());
    log::info!("storm: {written} records before this one");
}

/// The boot CPU's part: its own records, and NMIs to the others.
fn raise_storm(me: u32) {
    for number in 0..STORM_RECORDS {
        log_in_storm(number, me);
        if number % NMI_EVERY == 0 {
            cpus::online().into_iter().skip(1).filter_map(cpus::apic_id).for_each(|id| _ = apic::send_nmi(id));
            // An emulator lets the others run meanwhile.
            (0..NMI_PAUSES).for_each(|_| cpu::pause());
        }
    }
    IS_OVER.store(true, Ordering::Release);
}

fn log_in_storm(number: u32, me: u32) {
    log::info!("storm: record {number} of CPU {me}");
}
