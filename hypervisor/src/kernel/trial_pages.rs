// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each CPU's page between two images, while this image is on trial: where the pages are, and the time stamps that
//! CPUs leave there.

use core::sync::atomic::{AtomicU64, Ordering};

use ::update::trial::{STAMPS, Stamp, TrialPage};

use crate::arch::cpu;
use crate::arch::cpu_local::cpu_local;
use crate::arch::percpu::{self, BOOT_CPU};
use crate::arch::switch_pages::trial;

cpu_local! {
    /// The address of the CPU's page; 0 unless this image is on trial.
    static PAGE: AtomicU64 = AtomicU64::new(0);
}

/// Notes that the page of the CPU `index` is at this address.
pub fn note_page(index: u32, at: u64) {
    if let Some(page) = PAGE.of(index) {
        page.store(at, Ordering::Relaxed);
    }
}

/// The calling CPU's page; `None` unless this image is on trial.
pub fn page() -> Option<&'static TrialPage> {
    page_of(percpu::number().unwrap_or(BOOT_CPU))
}

/// The page of the CPU `index`; `None` unless this image is on trial.
pub fn page_of(index: u32) -> Option<&'static TrialPage> {
    let at = PAGE.of(index)?.load(Ordering::Relaxed);
    if at == 0 { None } else { trial::own_page(at) }
}

/// Each CPU's stamps, while this image is on trial or has just taken over.
pub fn stamps() -> impl Iterator<Item = (u32, [u64; STAMPS])> {
    let pages = PAGE.all().filter_map(|(index, _)| Some((index, page_of(index)?)));
    pages.map(|(index, page)| (index, core::array::from_fn(|stamp| page.stamps[stamp].load(Ordering::Relaxed))))
}

/// Notes that the CPU `index` is about to enter a guest, or has no vCPU that could run: its blackout is over.
pub fn note_entered(index: u32) {
    if let Some(page) = page_of(index)
        && page.stamps[Stamp::Entered as usize].load(Ordering::Relaxed) == 0
    {
        page.stamp(Stamp::Entered, cpu::tsc());
    }
}

/// Returns whether this image is on trial, or has just taken over and shares the machine with the old one.
pub fn is_on_trial() -> bool {
    PAGE.of(BOOT_CPU).is_some_and(|page| page.load(Ordering::Relaxed) != 0)
}

/// Ends the trial: this image is the one that runs.
pub fn end() {
    PAGE.all().for_each(|(_, page)| page.store(0, Ordering::Relaxed));
}
