// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each CPU's page between two images, while this image is on trial: where the pages are, and the time stamps that
//! CPUs leave there.

use core::sync::atomic::{AtomicU16, Ordering};

use ::update::trial::{STAMPS, Stamp, TrialPage};
use units::PAGE_BYTES;

use crate::arch::address::SWITCH_PAGES;
use crate::arch::cpu;
use crate::arch::percpu::{self, BOOT_CPU, MAX_CPUS};
use crate::arch::switch_pages::trial;

/// The place of each CPU's page, in pages from the switch area's first one, which is no CPU's; 0 unless this image is
/// on trial.
static PAGES: [AtomicU16; MAX_CPUS] = [const { AtomicU16::new(0) }; MAX_CPUS];

/// Notes that the page of the CPU `index` is at this address.
pub fn note_page(index: u32, at: u64) {
    let number = at.checked_sub(SWITCH_PAGES).and_then(|offset| u16::try_from(offset / PAGE_BYTES).ok());
    if let (Some(place), Some(number)) = (PAGES.get(index as usize), number) {
        place.store(number, Ordering::Relaxed);
    }
}

/// The calling CPU's page; `None` unless this image is on trial.
pub fn page() -> Option<&'static TrialPage> {
    page_of(percpu::number().unwrap_or(BOOT_CPU))
}

/// The page of the CPU `index`; `None` unless this image is on trial.
pub fn page_of(index: u32) -> Option<&'static TrialPage> {
    let number = PAGES.get(index as usize)?.load(Ordering::Relaxed);
    if number == 0 { None } else { trial::own_page(SWITCH_PAGES + u64::from(number) * PAGE_BYTES) }
}

/// Each CPU's stamps, while this image is on trial or has just taken over.
pub fn stamps() -> impl Iterator<Item = (u32, [u64; STAMPS])> {
    let pages = (0..MAX_CPUS as u32).filter_map(|index| Some((index, page_of(index)?)));
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
    PAGES[BOOT_CPU as usize].load(Ordering::Relaxed) != 0
}

/// Ends the trial: this image is the one that runs.
pub fn end() {
    PAGES.iter().for_each(|page| page.store(0, Ordering::Relaxed));
}
