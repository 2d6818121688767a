// SPDX-License-Identifier: MIT OR Apache-2.0
//! Failures on purpose of an image on trial (`selftest=update:…`).

use core::sync::atomic::{AtomicBool, Ordering};

use ::boot::options::{UpdateFault, UpdateStep};

use crate::arch::cpu;
use crate::arch::trap::{self, Provocation};
use crate::kernel::inherited;
use crate::lifecycle::restart::update_fault;

/// The image is prepared, and the blackout has begun.
static IS_IN_GAP: AtomicBool = AtomicBool::new(false);

/// From now on faults are those of the blackout.
pub fn begin_gap() {
    IS_IN_GAP.store(true, Ordering::Relaxed);
}

/// A self-test may want this image to fail in the gap: on the last processor, or, if it is to freeze, on all of them.
pub fn fail_in_gap_if_asked(index: u32, step: UpdateStep) {
    let is_everywhere = fault_in_gap(step) == Some(UpdateFault::Freeze);
    let is_last = || inherited::members().last().is_some_and(|(last, ..)| last == index);
    if fault_in_gap(step).is_some() && (is_everywhere || is_last()) {
        fail_if_asked(step);
    }
}

/// The fault that a self-test wants at this step of the gap. A rehearsal has none.
pub fn fault_in_gap(step: UpdateStep) -> Option<UpdateFault> {
    update_fault(step).filter(|_| IS_IN_GAP.load(Ordering::Relaxed))
}

/// A self-test may want this image to fail here.
pub fn fail_if_asked(step: UpdateStep) {
    match update_fault(step) {
        Some(UpdateFault::Panic) => panic!("self-test"),
        Some(UpdateFault::Exception) => trap::provoke(Provocation::PageFault),
        Some(UpdateFault::StackOverflow) => trap::provoke(Provocation::StackOverflow),
        Some(UpdateFault::Hang) => loop {
            cpu::pause();
        },
        Some(UpdateFault::Freeze) => {
            cpu::mask_interrupts();
            loop {
                cpu::pause();
            }
        }
        // These are done where it restores.
        Some(UpdateFault::Damage | UpdateFault::Wrong) | None => {}
    }
}
