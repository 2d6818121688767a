// SPDX-License-Identifier: MIT OR Apache-2.0
//! Failures of the host on purpose (`selftest=`), in the test image only. Each function is what a fault point does
//! ([`crate::arch::fault`]).

pub mod interrupt;
pub mod logging;
pub mod update;

use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use boot::self_tests::{EndFault, EndStep, SelfTest};
use endstate::Step;
use units::{PhysAddr, PhysRange};

use crate::arch::address::DIRECT_MAP;
use crate::arch::faults::{self, Provocation};
use crate::arch::percpu::PerCpu;
use crate::arch::probe::Refused;
use crate::arch::trap::vector;
use crate::arch::{apic, cpu, heap, virt};
use crate::kernel::cpus;
use crate::kernel::faults::{is_asked_for_in, self_tests};
use crate::kernel::timeline::{self, Name};

/// A vector that is no one's.
const UNEXPECTED_VECTOR: u8 = 0x77;
/// The time for which one CPU waits for the other: far longer than it takes, in pauses.
const PATIENCE: u32 = 1_000_000_000;
/// In the code of a staged image.
const SPOILT_AT: u64 = 0x8000;

/// CPUs that have come to their loop.
static ARRIVED: AtomicU32 = AtomicU32::new(0);
static IS_ARMED: AtomicBool = AtomicBool::new(false);

/// Panics when it is shown.
struct Bomb;

impl fmt::Display for Bomb {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("self-test, while a record is formatted")
    }
}

/// The host is up, but for its guests: fails in the ways that are asked for, or arms what fails later.
pub fn run_self_tests() {
    let Some(tests) = self_tests().map(|tests| tests.all()).filter(|tests| !tests.is_empty()) else { return };
    let _span = timeline::span(Name::SelfTests, 0);
    for test in tests {
        log::info!("self-test: {test:?}");
        match test {
            SelfTest::Exception => faults::provoke(Provocation::InvalidOpcode),
            SelfTest::PageFault => faults::provoke(Provocation::PageFault),
            SelfTest::StackOverflow => faults::provoke(Provocation::StackOverflow),
            SelfTest::WriteToCode => faults::provoke(Provocation::WriteToCode),
            SelfTest::Panic => panic!("self-test"),
            SelfTest::Log => logging::contexts(),
            // The others happen elsewhere, or fail in ways of their own.
            other => fail(*other),
        }
    }
}

fn fail(test: SelfTest) {
    match test {
        SelfTest::PanicInInterrupt => {
            apic::send(apic::id(), vector::SELF_TEST);
            cpu::take_pending_interrupts();
        }
        SelfTest::Nmi => {
            apic::send_nmi(apic::id());
        }
        SelfTest::UnexpectedInterrupt => {
            apic::send(apic::id(), UNEXPECTED_VECTOR);
            cpu::take_pending_interrupts();
        }
        SelfTest::RefusedRegister => match faults::write_reserved_bits() {
            Err(Refused) => log::info!("self-test: the CPU has refused a write, and the host goes on"),
            Ok(()) => log::error!("self-test: the CPU has taken a write that it was to refuse"),
        },
        SelfTest::PanicInLog => log::info!("{Bomb}"),
        SelfTest::PanicInHeap => heap::while_locked(|| panic!("self-test, while the heap is locked")),
        SelfTest::PanicInReport => panic!("{Bomb}"),
        SelfTest::PanicWhenAsked => IS_ARMED.store(true, Ordering::Relaxed),
        // These wait for the other CPUs.
        _ => {}
    }
}

/// A client has asked for events.
pub fn asked_for_events() {
    if IS_ARMED.load(Ordering::Relaxed) {
        panic!("self-test, as asked");
    }
}

/// The host's end has come to this step: it fails where that is wanted.
pub fn in_the_end(step: Step) {
    let fault = self_tests().zip(to_test(step)).and_then(|(tests, step)| tests.end(step));
    match fault {
        None => {}
        Some(EndFault::Panic) => panic!("self-test, in a step of the end"),
        Some(EndFault::Exception) => faults::provoke(Provocation::PageFault),
        Some(EndFault::Hang) => loop {
            cpu::pause();
        },
    }
}

fn to_test(step: Step) -> Option<EndStep> {
    Some(match step {
        Step::Stop => EndStep::Stop,
        Step::Report => EndStep::Report,
        Step::Epitaph => EndStep::Epitaph,
        Step::Flush => EndStep::Flush,
        Step::LastWords => EndStep::LastWords,
        Step::Notify => EndStep::Notify,
        Step::Rest => EndStep::Rest,
        Step::Note | Step::Leave | Step::Halt => return None,
    })
}

/// Returns true if the calling CPU, which has this number, does not park in the first restart: the last one.
pub fn is_unresponsive_at_parking(index: u32) -> bool {
    cpus::online().last() == Some(&index) && is_asked_for_in(1, SelfTest::UnresponsiveAtParking)
}

/// The first image writes to the image that is staged in this memory.
pub fn spoil_staged(slot: PhysRange) {
    if is_asked_for_in(1, SelfTest::SpoilStaged) {
        let at = PhysAddr(slot.start().0 + SPOILT_AT);
        log::warn!("self-test: a stray write to the staged image at {:#018x}", DIRECT_MAP + at.0);
        faults::write_astray(at);
    }
}

/// A CPU is about to enter its loop, everything enabled.
pub fn before_the_loop() {
    logging::before_the_loop();
    let Some(tests) = self_tests() else { return };
    let me = PerCpu::current().index;
    for test in tests.all().iter().filter(|_| me < 2) {
        match (test, me) {
            (SelfTest::PanicOnTwo, _) => {
                meet();
                panic!("self-test, on two CPUs at once");
            }
            (SelfTest::PanicBesideMasked, 1) => be_busy(),
            (SelfTest::PanicBesideUnresponsive, 1) => {
                virt::block_all_interrupts();
                be_busy();
            }
            (SelfTest::PanicBesideMasked | SelfTest::PanicBesideUnresponsive, 0) => {
                meet();
                panic!("self-test, beside one that does not listen");
            }
            _ => {}
        }
    }
}

/// Waits, interrupts masked, until CPUs 0 and 1 have both come here.
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
