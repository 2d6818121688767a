// SPDX-License-Identifier: MIT OR Apache-2.0
//! An update on the timeline: each CPU's way through the blackout, from the stamps that both images have left on its
//! page. The image that goes on draws it, beside its guests.

use core::sync::atomic::{AtomicU64, Ordering};

use ::update::trial::{STAMPS, Stamp};

use crate::arch::cpu;
use crate::arch::percpu::BOOT_CPU;
use crate::kernel::inherited;
use crate::kernel::timeline::{self, Name};

/// The step between a stamp and the one after it.
const STEPS: [(Name, Stamp, Stamp); 7] = [
    (Name::UpdateBlackout, Stamp::Left, Stamp::Entered),
    (Name::UpdateSave, Stamp::Left, Stamp::Saved),
    (Name::UpdateWaitSaved, Stamp::Saved, Stamp::Gone),
    (Name::UpdateCross, Stamp::Gone, Stamp::Arrived),
    (Name::UpdateRestore, Stamp::Arrived, Stamp::Restored),
    (Name::UpdateWaitRestored, Stamp::Restored, Stamp::Committed),
    (Name::UpdateEnter, Stamp::Committed, Stamp::Entered),
];

/// The time of this image's first instruction, if it came on trial; else 0.
static ENTERED_AT: AtomicU64 = AtomicU64::new(0);

/// Notes when the first instruction of this image, which is on trial, was.
pub fn note_entered(entered_at: u64) {
    ENTERED_AT.store(entered_at, Ordering::Relaxed);
}

/// The blackout, once this image goes on in the rings of the one before.
pub fn draw(generation: u32, stamps: &[(u32, [u64; STAMPS])]) {
    timeline::entered(ENTERED_AT.load(Ordering::Relaxed), inherited::generation());
    for (index, stamps) in stamps {
        for (name, from, to) in STEPS {
            timeline::spent_on(*index, name, generation, stamps[from as usize], stamps[to as usize]);
        }
    }
}

/// Ends the span of the work that was left once guests ran.
pub fn end(generation: u32, stamps: &[(u32, [u64; STAMPS])]) {
    let own = stamps.iter().find(|(index, _)| *index == BOOT_CPU);
    let entered = own.map_or(0, |(_, stamps)| stamps[Stamp::Entered as usize]);
    timeline::spent(Name::UpdateSettle, generation, entered, cpu::tsc());
}
