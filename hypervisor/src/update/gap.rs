// SPDX-License-Identifier: MIT OR Apache-2.0
//! The gap: every processor leaves its guests, saves them, and goes to the new image; or all stay. Nothing here allocates, and no
//! wait is without a limit.
//!
//! ```text
//! boot processor  publish, tell ─┐
//! each processor                 stop ─ all ─▶ save ─ all ─▶ new image … and back, if that rolls back
//! ```
//!
//! Before, while guests go on, each processor takes the same way alone, and stays ([`Gap::rehearsal`]): code that has run lately is in
//! caches, and in an emulator translated, when all guests wait for it.

mod way;

use alloc::string::String;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use boot::options::UpdateLimit;
use bringup::takeover::Takeover;
use bringup::trial::Stamp;
use handover::block::BlockMut;
use handover::layout::Stamps;
use handover::state::{BlockKind, Late};
use spin::{RwLock, RwLockReadGuard};

use super::drafts::Blocks;
use crate::arch::percpu;
use crate::arch::{cpu, smp, timer, watchdog};
use crate::restart::Conversation;
use crate::restart::record::control_section;
use crate::restart::staging::Staged;
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
    route: Route,
    blocks: Blocks,
    asked: u64,
    stopped: u64,
    /// Of each member, in the parcel's order: it has taken part.
    have_come: alloc::vec::Vec<AtomicBool>,
    /// Likewise: it is back.
    are_back: alloc::vec::Vec<AtomicBool>,
    /// When the last one so far came back.
    returned: AtomicU64,
}

enum Route {
    /// To this image.
    Staged(Staged),
    /// To nowhere: one processor tries everything up to there.
    Nowhere(Takeover),
}

/// Whether the calling processor is to go to the gap.
#[inline]
pub fn is_open() -> bool {
    IS_OPEN.load(Ordering::Acquire)
}

/// Whether an NMI is one that was sent to fetch a processor from an image on trial: the processor may have been back for long, and in a
/// guest since, or all may have stayed in the new image, which is this one.
pub fn takes_nmi() -> bool {
    is_open() || watchdog::takes_nmi() || super::candidate::is_on_trial()
}

/// How long the gap may last before all go back, in microseconds.
pub fn limit_us() -> u64 {
    BOOT.get().map_or(UpdateLimit::Auto, |(_, options)| options.update_limit).us(smp::is_virtual())
}

/// Opens the gap: every processor comes at its next look.
pub fn open(staged: Staged, asked: u64) {
    let members = &staged.parcel.members;
    let blocks = Blocks::new(&staged.parcel.baggage, staged.parcel.version);
    staged.parcel.baggage.forget_drafts();
    let limit = limit_us();
    if staged.parcel.next.image.trial_version() >= WATCHED_SINCE {
        watchdog::arm(limit + limit / WATCHDOG_SHARE);
    }
    let stopped = cpu::tsc();
    staged.crossing.takeover().begin(members.len() as u32, stopped + timer::us_to_ticks(limit));
    let others: alloc::vec::Vec<u32> = members.iter().skip(1).map(|member| member.index).collect();
    let [have_come, are_back] = [(); 2].map(|()| members.iter().map(|_| AtomicBool::new(false)).collect());
    let returned = AtomicU64::new(stopped);
    *GAP.write() = Some(Gap { route: Route::Staged(staged), blocks, asked, stopped, have_come, are_back, returned });
    IS_OPEN.store(true, Ordering::Release);
    others.into_iter().for_each(percpu::wake);
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
    /// One for a single processor, which does all that is done in a gap, and stays.
    pub fn rehearsal(blocks: Blocks) -> Self {
        let (words, now) = (Takeover::new(), cpu::tsc());
        words.begin(1, now + timer::us_to_ticks(limit_us()));
        let [have_come, are_back] = [const { alloc::vec::Vec::new() }; 2];
        let returned = AtomicU64::new(now);
        Self { route: Route::Nowhere(words), blocks, asked: now, stopped: now, have_come, are_back, returned }
    }

    fn takeover(&self) -> &Takeover {
        match &self.route {
            Route::Staged(staged) => staged.crossing.takeover(),
            Route::Nowhere(words) => words,
        }
    }

    fn staged(&self) -> Option<&Staged> {
        match &self.route {
            Route::Staged(staged) => Some(staged),
            Route::Nowhere(_) => None,
        }
    }

    /// Where guests are saved.
    pub fn blocks(&self) -> &Blocks {
        &self.blocks
    }

    /// Whether the calling processor is to come to it: once.
    pub fn takes(&self, index: u32) -> bool {
        self.place_of(index)
            .and_then(|place| self.have_come.get(place))
            .is_some_and(|come| !come.swap(true, Ordering::AcqRel))
    }

    fn place_of(&self, index: u32) -> Option<usize> {
        self.staged()?.parcel.members.iter().position(|member| member.index == index)
    }

    /// The processor `index` got so far.
    pub fn stamp(&self, index: u32, stamp: Stamp) {
        if let Some(page) = self.staged().and_then(|staged| staged.crossing.trial_page(index)) {
            page.stamp(stamp, cpu::tsc());
        }
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
        let owner = handover::block::Owner { guest: 0, vcpu: 0 };
        let block = self.blocks.block(BlockKind::Late, owner).ok_or("the host has no block")?;
        let late = Late {
            stamps: Stamps {
                asked: self.asked.into(),
                stopped: self.stopped.into(),
                parked: cpu::tsc().into(),
                left: cpu::tsc().into(),
            },
            control: control_section(conversation),
        };
        block.with(|bytes| {
            let mut block =
                BlockMut::<Late>::begin(bytes, owner, self.blocks.version).map_err(|_| "the host finds no room")?;
            let (into, _) = block.parts().map_err(|_| "the host finds no room")?;
            *into = late;
            block.finish(0).map_err(|_| "the host finds no room".into())
        })
    }
}
