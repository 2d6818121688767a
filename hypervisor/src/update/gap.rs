// SPDX-License-Identifier: MIT OR Apache-2.0
//! The gap: every processor leaves its guests, saves them, and goes to the new image; or all stay. Nothing here
//! allocates, and no wait is without a limit.
//!
//! ```text
//! boot processor  publish, tell ─┐
//! each processor                 stop ─ all ─▶ save ─ all ─▶ new image … and back, if that rolls back
//! ```
//!
//! Before, while guests go on, each processor takes the same way alone, and stays ([`Gap::rehearsal`]): code that has
//! run lately is in caches, and in an emulator translated, when all guests wait for it.

mod way;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ::update::takeover::Takeover;
use ::update::trial::{Stamp, TrialPage};
use boot::options::UpdateLimit;
use handover::layout::Stamps;
use spin::{RwLock, RwLockReadGuard};

use super::drafts::Blocks;
use crate::arch::percpu;
use crate::arch::{cpu, smp, timer, watchdog};
use crate::restart::Conversation;
use crate::restart::staging::Staged;
use crate::selftest;
use crate::start::BOOT;

/// The watchdog has so much more patience than the processors, as a share of theirs.
const WATCHDOG_SHARE: u64 = 4;
/// The version of the pages between images since which a watchdog may go off after a new image has taken over.
const WATCHED_SINCE: u32 = 2;

/// The gap that has begun, if one has. Written by the boot processor before it begins and when all are back.
static GAP: RwLock<Option<Gap>> = RwLock::new(None);
/// Every processor is to go to it.
static IS_OPEN: AtomicBool = AtomicBool::new(false);

/// What all processors need on their way.
pub struct Gap {
    /// To this image; `None`: a rehearsal, which leads nowhere.
    staged: Option<Staged>,
    /// A rehearsal's own.
    words: Takeover,
    blocks: Blocks,
    asked: u64,
    stopped: u64,
    /// The CPUs that take part, the boot CPU first.
    parts: Vec<Part>,
    /// When the last one so far came back.
    returned: AtomicU64,
}

/// A processor's part.
struct Part {
    index: u32,
    apic_id: u32,
    has_come: AtomicBool,
    is_back: AtomicBool,
}

impl Part {
    const fn new(index: u32, apic_id: u32) -> Self {
        Self { index, apic_id, has_come: AtomicBool::new(false), is_back: AtomicBool::new(false) }
    }
}

/// Whether the calling processor is to go to the gap.
#[inline]
pub fn is_open() -> bool {
    IS_OPEN.load(Ordering::Acquire)
}

/// Whether an NMI is one that was sent to fetch a processor from an image on trial: the processor may have been back
/// for long, and in a guest since, or all may have stayed in the new image, which is this one.
pub fn takes_nmi() -> bool {
    watchdog::takes_nmi() || is_open() || super::candidate::is_on_trial()
}

/// How long the gap may last before all go back, in microseconds.
pub fn limit_us() -> u64 {
    BOOT.get().map_or(UpdateLimit::Auto, |(_, options)| options.update_limit).us(smp::is_virtual())
}

/// Opens the gap: every processor comes at its next look.
pub fn open(staged: Staged, asked: u64) {
    let members = &staged.parcel.members;
    let parts: Vec<Part> = members.iter().map(|member| Part::new(member.index, member.apic_id)).collect();
    let others: Vec<u32> = parts.iter().skip(1).map(|part| part.index).collect();
    let blocks = Blocks::new(&staged.parcel.baggage, staged.parcel.version);
    staged.parcel.baggage.forget_drafts();
    set_fault_point(&staged);
    let limit = limit_us();
    if staged.parcel.next.image.trial_version() >= WATCHED_SINCE {
        watchdog::arm(limit + limit / WATCHDOG_SHARE);
    }
    let mut gap = Gap { staged: Some(staged), ..Gap::of(parts, blocks, asked) };
    // All that can be done before this has been.
    gap.stopped = cpu::tsc();
    gap.begin(gap.stopped + timer::us_to_ticks(limit));
    *GAP.write() = Some(gap);
    IS_OPEN.store(true, Ordering::Release);
    others.into_iter().for_each(percpu::wake);
}

/// A self-test may want CPUs to wait on their way: all but the last one, on which the new image then fails, so that it
/// brings the others back by NMIs.
fn set_fault_point(staged: &Staged) {
    let Some((point, ticks)) = selftest::update_wait() else { return };
    let members = &staged.parcel.members;
    for member in &members[..(members.len() - 1).max(1)] {
        staged.crossing.wait_at(member.index, point, ticks);
    }
}

/// The gap, for a processor that comes to it.
pub fn current() -> RwLockReadGuard<'static, Option<Gap>> {
    GAP.read()
}

/// All are back: what is left of the new image is taken away. For the boot processor.
pub fn close() -> Option<Gap> {
    watchdog::disarm();
    IS_OPEN.store(false, Ordering::Release);
    GAP.write().take()
}

impl Gap {
    /// One for the processor `index` alone, which does all that is done in a gap, and stays.
    pub fn rehearsal(index: u32, blocks: Blocks) -> Self {
        let now = cpu::tsc();
        let this = Self::of(alloc::vec![Part::new(index, 0)], blocks, now);
        this.begin(now + timer::us_to_ticks(limit_us()));
        this
    }

    fn of(parts: Vec<Part>, blocks: Blocks, asked: u64) -> Self {
        let returned = AtomicU64::new(0);
        Self { staged: None, words: Takeover::new(), blocks, asked, stopped: asked, parts, returned }
    }

    fn begin(&self, deadline: u64) {
        self.returned.store(self.stopped, Ordering::Relaxed);
        self.takeover().begin(self.parts.len() as u32, deadline);
    }

    fn takeover(&self) -> &Takeover {
        self.staged.as_ref().map_or(&self.words, |staged| staged.crossing.takeover())
    }

    /// Where guests are saved.
    pub fn blocks(&self) -> &Blocks {
        &self.blocks
    }

    /// Whether the processor `index` is to come to it: once.
    pub fn takes(&self, index: u32) -> bool {
        self.part_of(index).is_some_and(|part| !part.has_come.swap(true, Ordering::AcqRel))
    }

    fn part_of(&self, index: u32) -> Option<&Part> {
        self.parts.iter().find(|part| part.index == index)
    }

    /// The processor `index` got so far.
    pub fn stamp(&self, index: u32, stamp: Stamp) {
        if let Some(page) = self.staged.as_ref().and_then(|staged| staged.crossing.trial_page(index)) {
            page.stamp(stamp, cpu::tsc());
        }
    }

    /// Where a self-test made CPUs wait on their way, and how often NMIs interrupted them there.
    pub fn fault_point(&self) -> Option<String> {
        let staged = self.staged.as_ref()?;
        let pages = || self.parts.iter().filter_map(|part| staged.crossing.trial_page(part.index));
        let sum = |of: fn(&TrialPage) -> &AtomicU64| pages().map(|page| of(page).load(Ordering::Relaxed)).sum::<u64>();
        let point = selftest::update_point(pages().next()?.wait_step.load(Ordering::Relaxed))?;
        let (waits, hits) = (sum(|page| &page.waits), sum(|page| &page.hits));
        Some(format!("{point}: {waits} waits, {hits} NMIs"))
    }

    /// Whether all are back.
    pub fn are_all_back(&self) -> bool {
        self.takeover().are_all_back()
    }

    /// How long after the order to stop the last processor came back.
    pub fn lasted_ns(&self) -> u64 {
        timer::ticks_to_ns(self.returned.load(Ordering::Acquire).saturating_sub(self.stopped))
    }

    /// Who rolled back.
    pub fn blamed(&self) -> Option<u32> {
        self.takeover().blamed()
    }

    /// Saves what the host itself knows last: the conversation, and when what happened.
    ///
    /// # Errors
    /// It finds no room.
    pub fn save_host(&self, conversation: &Conversation) -> Result<(), String> {
        let stamps = Stamps {
            asked: self.asked.into(),
            stopped: self.stopped.into(),
            parked: cpu::tsc().into(),
            left: cpu::tsc().into(),
        };
        self.blocks.save_host(&stamps, conversation)
    }
}
