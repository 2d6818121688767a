// SPDX-License-Identifier: MIT OR Apache-2.0
//! An image on trial that fails, as the operator asks (`selftest=update:<fault>:<step>`), and CPUs that wait on their
//! way between two images (`selftest=update:wait:<point>`).
//!
//! The new image fails, the old one makes its CPUs wait: only the one that has the wanted part has to be a test image.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use ::update::blackout::Blackout;
use ::update::trial::{FAULT_POINTS, TrialPage};
use boot::self_tests::{SelfTest, UpdateFault, UpdateStep};

use super::interrupt;
use crate::arch::faults::{self, Provocation};
use crate::arch::switch_pages::SwitchPages;
use crate::arch::{cpu, timer};
use crate::kernel::faults::{is_asked_for_in, self_tests};
use crate::kernel::inherited;

/// The time for which a CPU waits at most for an NMI at a fault point on its way between two images.
const WAIT_US: u64 = 100_000;
/// The first NMI comes so long after the first CPU is back: the others know of the roll-back then, and are on their
/// way. One that an NMI returns is at none of the points on the way back when the next one comes.
const FIRST_NMI_US: u64 = 20_000;
const _: () = assert!(SelfTest::UPDATE_POINTS.len() == FAULT_POINTS);

/// This image is on trial, and prepared: the blackout has begun. A rehearsal before it has no faults.
static IS_IN_BLACKOUT: AtomicBool = AtomicBool::new(false);
/// Updates that waited at each fault point in turn.
static UPDATES: AtomicUsize = AtomicUsize::new(0);

/// Fault point: this image has built nothing yet.
pub fn begin() {
    fail(fault_at(UpdateStep::Begin));
}

/// Fault point: this image has prepared itself, and the blackout is next.
pub fn prepared() {
    fail(fault_at(UpdateStep::Prepare));
    IS_IN_BLACKOUT.store(true, Ordering::Relaxed);
}

/// The CPU has come to this image with its guests.
pub fn arrived(index: u32) {
    if IS_IN_BLACKOUT.load(Ordering::Relaxed) {
        interrupt::await_one(index);
    }
    fail_in_blackout(index, UpdateStep::Arrive);
}

/// The CPU is about to restore its guests.
pub fn restoring(index: u32) {
    fail_in_blackout(index, UpdateStep::Restore);
}

/// The CPU has restored them.
pub fn restored(index: u32) {
    fail_in_blackout(index, UpdateStep::Meet);
}

/// Passes what was saved of a vCPU to `restore`, perhaps damaged.
pub fn with_saved<T>(saved: &[u8], restore: impl FnOnce(&[u8]) -> T) -> T {
    const DAMAGED_AT: usize = 200;
    if fault_in_blackout(UpdateStep::Restore) != Some(UpdateFault::Damage) {
        return restore(saved);
    }
    let mut saved: Vec<u8> = saved.to_vec();
    saved.get_mut(DAMAGED_AT).into_iter().for_each(|byte| *byte ^= 1);
    restore(&saved)
}

/// Returns true if this image would go on with another state of a vCPU than was saved.
pub fn is_astray() -> bool {
    fault_at(UpdateStep::Prepare) == Some(UpdateFault::Wrong)
}

/// Makes all of these CPUs but the last wait on their way. On the last one the new image fails, so that it returns the
/// others by NMIs.
pub fn wait_on_the_way(switch_pages: &SwitchPages, cpus: impl ExactSizeIterator<Item = u32>, blackout: &mut Blackout) {
    let Some(tests) = self_tests().filter(|tests| tests.update_wait(0).is_some()) else { return };
    let Some(point) = tests.update_wait(UPDATES.fetch_add(1, Ordering::Relaxed)) else { return };
    let waiting = cpus.len().saturating_sub(1).max(1);
    cpus.take(waiting).for_each(|index| switch_pages.wait_at(index, point as u64, timer::us_to_ticks(WAIT_US)));
    blackout.set_first_nmi_us(FIRST_NMI_US);
}

/// Returns where CPUs waited on their way, and how often NMIs interrupted them there.
pub fn waits<'a>(pages: impl Iterator<Item = &'a TrialPage>) -> Option<String> {
    let pages: Vec<_> = pages.collect();
    let sum =
        |of: fn(&TrialPage) -> &AtomicU64| -> u64 { pages.iter().map(|page| of(page).load(Ordering::Relaxed)).sum() };
    let point = usize::try_from(pages.first()?.wait_step.load(Ordering::Relaxed)).ok()?;
    let name = SelfTest::UPDATE_POINTS.get(point.checked_sub(1)?)?;
    let (waits, hits) = (sum(|page| &page.waits), sum(|page| &page.hits));
    Some(format!("{name}: {waits} waits, {hits} NMIs"))
}

/// Returns whether the control line of this image is broken. Only the second image of a host has such a line.
pub fn is_line_broken() -> bool {
    is_asked_for_in(2, SelfTest::UpdateBreaksLine)
}

/// Returns the fault of this step. Only the second image of a host has any: the first one would replace itself by it.
fn fault_at(step: UpdateStep) -> Option<UpdateFault> {
    self_tests().filter(|_| inherited::generation() == 2)?.update(step)
}

fn fault_in_blackout(step: UpdateStep) -> Option<UpdateFault> {
    fault_at(step).filter(|_| IS_IN_BLACKOUT.load(Ordering::Relaxed))
}

/// Fails on the last CPU; where this image is to freeze, on all of them.
fn fail_in_blackout(index: u32, step: UpdateStep) {
    let fault = fault_in_blackout(step);
    let is_last = || inherited::members().last().is_some_and(|(last, ..)| last == index);
    if fault.is_some() && (fault == Some(UpdateFault::Freeze) || is_last()) {
        fail(fault);
    }
}

fn fail(fault: Option<UpdateFault>) {
    match fault {
        Some(UpdateFault::Panic) => panic!("self-test"),
        Some(UpdateFault::Exception) => faults::provoke(Provocation::PageFault),
        Some(UpdateFault::StackOverflow) => faults::provoke(Provocation::StackOverflow),
        Some(UpdateFault::Hang) => hang(),
        Some(UpdateFault::Freeze) => {
            cpu::mask_interrupts();
            hang()
        }
        // These are done where guests are restored.
        Some(UpdateFault::Damage | UpdateFault::Wrong) | None => {}
    }
}

fn hang() -> ! {
    loop {
        cpu::pause();
    }
}
