// SPDX-License-Identifier: MIT OR Apache-2.0
//! Failures on purpose (`selftest=`) that take more than one instruction.

use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use boot::options::SelfTest;

use crate::arch::percpu::{BOOT_PROCESSOR, PerCpu};
use crate::arch::trap::vector;
use crate::arch::{apic, cpu, heap, svm};
use crate::restart::cost;
use crate::start::BOOT;

/// How long one processor waits for the other: far longer than it takes, in pauses.
const PATIENCE: u32 = 1_000_000_000;

/// Processors that have come to their loop.
static ARRIVED: AtomicU32 = AtomicU32::new(0);
static IS_ARMED: AtomicBool = AtomicBool::new(false);

/// Panics when it is shown.
struct Bomb;

impl fmt::Display for Bomb {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("self-test, while a record is formatted")
    }
}

/// Fails in this way, or arms what fails later.
pub fn fail(test: SelfTest) {
    match test {
        SelfTest::PanicInInterrupt => {
            apic::send(apic::id(), vector::SELF_TEST);
            cpu::take_pending_interrupts();
        }
        SelfTest::Nmi => {
            apic::send_nmi(apic::id());
        }
        SelfTest::PanicInLog => log::info!("{Bomb}"),
        SelfTest::PanicInHeap => heap::while_locked(|| panic!("self-test, while the heap is locked")),
        SelfTest::PanicInReport => panic!("{Bomb}"),
        SelfTest::PanicWhenAsked => IS_ARMED.store(true, Ordering::Relaxed),
        // These wait for the other processors.
        _ => {}
    }
}

/// Somebody has asked for events.
pub fn asked_for_events() {
    if IS_ARMED.load(Ordering::Relaxed) {
        panic!("self-test, as asked");
    }
}

/// A processor is about to enter its loop, everything enabled.
pub fn before_the_loop() {
    let Some((_, options)) = BOOT.get() else { return };
    let me = PerCpu::current().index;
    for test in options.self_tests.iter().filter(|_| me < 2) {
        match (test, me) {
            (SelfTest::PanicOnTwo, _) => {
                meet();
                panic!("self-test, on two processors at once");
            }
            (SelfTest::HashCost, BOOT_PROCESSOR) => cost::measure(),
            (SelfTest::PanicBesideMasked, 1) => be_busy(),
            (SelfTest::PanicBesideDeaf, 1) => {
                svm::close_global_interrupts();
                be_busy();
            }
            (SelfTest::PanicBesideMasked | SelfTest::PanicBesideDeaf, 0) => {
                meet();
                panic!("self-test, beside one that does not listen");
            }
            _ => {}
        }
    }
}

/// Waits, interrupts masked, until processors 0 and 1 have both come here.
fn meet() {
    ARRIVED.fetch_add(1, Ordering::AcqRel);
    for _ in 0..PATIENCE {
        if ARRIVED.load(Ordering::Acquire) >= 2 {
            return;
        }
        cpu::pause();
    }
}

/// Never comes back, interrupts masked.
fn be_busy() -> ! {
    ARRIVED.fetch_add(1, Ordering::AcqRel);
    loop {
        cpu::pause();
    }
}
