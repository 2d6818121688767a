// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPUs that wait on their way between two images while NMIs arrive: in the test image only.

use core::sync::atomic::Ordering::Relaxed;

use ::update::trial::PAGE_BYTES;

use super::SwitchPages;
use super::pages::own_page;
use crate::arch::address::SWITCH_PAGES;
use crate::arch::trap::TrapFrame;

impl SwitchPages {
    /// The CPU `index` waits at this fault point on its way, for so many ticks each time.
    pub fn wait_at(&self, index: u32, step: u64, ticks: u64) {
        if let Some(page) = self.trial_page(index) {
            page.wait_ticks.store(ticks, Relaxed);
            page.wait_step.store(step, Relaxed);
        }
    }
}

/// In the handler of an NMI: counts one that found the calling CPU on its way between two images, under this image's
/// IDT.
pub fn note_nmi(frame: &TrapFrame) {
    let is_on_its_way = (SWITCH_PAGES..SWITCH_PAGES + PAGE_BYTES as u64).contains(&frame.rip);
    // The code is at the page's begin; there RBX is the CPU's page, but for the first and last instructions.
    if let Some(page) = is_on_its_way.then(|| own_page(frame.rbx)).flatten() {
        page.hits.fetch_add(1, Relaxed);
    }
}
