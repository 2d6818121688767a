// SPDX-License-Identifier: MIT OR Apache-2.0
//! Failures on purpose (`selftest=`) that take more than one instruction.

pub mod logging;

use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use boot::options::{EndFault, EndStep, SelfTest};
use endstate::Step;

use crate::arch::percpu::{BOOT_CPU, PerCpu};
use crate::arch::probe::{self, Refused};
use crate::arch::trap::{self, vector};
use crate::arch::{apic, cpu, heap, svm, timer};
use crate::kernel::platform::BOOT;
use crate::lifecycle::restart::cost;

/// A vector that is no one's.
const UNEXPECTED_VECTOR: u8 = 0x77;
/// The time for which one CPU waits for the other: far longer than it takes, in pauses.
const PATIENCE: u32 = 1_000_000_000;

/// The time for which a CPU waits at most for an NMI at a fault point on its way between two images.
const UPDATE_WAIT_US: u64 = 100_000;
/// The first NMI comes so long after the first CPU is back: the others have learnt of the roll-back then, and are on
/// their way. One that an NMI brings back is at none of the points on the way back when the next one comes.
pub const UPDATE_NMI_US: u64 = 20_000;
const _: () = assert!(SelfTest::UPDATE_POINTS.len() == ::update::trial::FAULT_POINTS);

/// Updates that waited at each fault point in turn.
static UPDATES: AtomicU32 = AtomicU32::new(0);
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
        SelfTest::UnexpectedInterrupt => {
            apic::send(apic::id(), UNEXPECTED_VECTOR);
            cpu::take_pending_interrupts();
        }
        SelfTest::RefusedRegister => match probe::write_reserved_bits() {
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

/// The fault point at which CPUs wait in the update that begins now, if one is wanted, and for how many ticks.
pub fn update_wait() -> Option<(u64, u64)> {
    let (_, options) = BOOT.get()?;
    let point = options.self_tests.iter().find_map(|test| match test {
        SelfTest::UpdateWait { point } => Some(*point),
        _ => None,
    })?;
    let in_turn = || UPDATES.fetch_add(1, Ordering::Relaxed) as usize % SelfTest::UPDATE_POINTS.len() + 1;
    let point = point.map_or_else(in_turn, usize::from);
    Some((point as u64, timer::us_to_ticks(UPDATE_WAIT_US)))
}

/// The name of a fault point.
pub fn update_point(point: u64) -> Option<&'static str> {
    let at = usize::try_from(point.checked_sub(1)?).ok()?;
    SelfTest::UPDATE_POINTS.get(at).copied()
}

/// Somebody has asked for events.
pub fn asked_for_events() {
    if IS_ARMED.load(Ordering::Relaxed) {
        panic!("self-test, as asked");
    }
}

/// The host's end has come to this step: it fails where that is wanted.
pub fn in_the_end(step: Step) {
    let Some((_, options)) = BOOT.get() else { return };
    let wanted = options.self_tests.iter().find_map(|test| match test {
        SelfTest::End { fault, step: at } if to_step(*at) == step => Some(*fault),
        _ => None,
    });
    match wanted {
        None => {}
        Some(EndFault::Panic) => panic!("self-test, in a step of the end"),
        Some(EndFault::Exception) => trap::provoke(trap::Provocation::PageFault),
        Some(EndFault::Hang) => loop {
            cpu::pause();
        },
    }
}

fn to_step(step: EndStep) -> Step {
    match step {
        EndStep::Stop => Step::Stop,
        EndStep::Report => Step::Report,
        EndStep::Epitaph => Step::Epitaph,
        EndStep::Flush => Step::Flush,
        EndStep::LastWords => Step::LastWords,
        EndStep::Notify => Step::Notify,
        EndStep::Rest => Step::Rest,
    }
}

/// A CPU is about to enter its loop, everything enabled.
pub fn before_the_loop() {
    logging::before_the_loop();
    let Some((_, options)) = BOOT.get() else { return };
    let me = PerCpu::current().index;
    for test in options.self_tests.iter().filter(|_| me < 2) {
        match (test, me) {
            (SelfTest::PanicOnTwo, _) => {
                meet();
                panic!("self-test, on two CPUs at once");
            }
            (SelfTest::HashCost, BOOT_CPU) => cost::measure(),
            (SelfTest::PanicBesideMasked, 1) => be_busy(),
            (SelfTest::PanicBesideUnresponsive, 1) => {
                svm::close_global_interrupts();
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
