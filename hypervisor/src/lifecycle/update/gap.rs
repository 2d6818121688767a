// SPDX-License-Identifier: MIT OR Apache-2.0
//! The blackout: every CPU leaves its guests, saves them, and goes to the new image; or all stay. What a CPU does when
//! is decided in [`::update::outbound`]; here is what that needs. Nothing here allocates, and no wait is without a
//! limit.
//!
//! Before, while guests go on, each CPU takes the same way alone, and stays ([`Gap::rehearsal`]): code that has run
//! lately is in caches, and in an emulator translated, when all guests wait for it.

mod way;

use alloc::string::String;
use core::sync::atomic::{AtomicBool, Ordering};

use ::update::blackout::Blackout;
use ::update::platform::Cpu;
use ::update::takeover::Takeover;
use boot::options::UpdateLimit;
use handover::layout::Stamps;
use spin::{RwLock, RwLockReadGuard};

use super::blocks::Blocks;
use super::machine::Machine;
use crate::arch::percpu::BOOT_PROCESSOR;
use crate::arch::{cpu, fault, smp, timer, watchdog};
use crate::kernel::inherited::Conversation;
use crate::kernel::platform::BOOT;
use crate::kernel::processors::Member;
use crate::kernel::trial_pages;
use crate::lifecycle::restart::parcel::Staged;

/// The watchdog has so much more patience than the processors, as a share of theirs.
const WATCHDOG_SHARE: u64 = 4;
/// The version of the pages between images since which a watchdog may go off after a new image has taken over.
const WATCHED_SINCE: u32 = 2;
/// The CPU that opens it and answers; it is never sent an NMI by its identifier.
const BOOT_CPU: Cpu = Cpu { index: BOOT_PROCESSOR, apic_id: 0 };

/// The gap that has begun, if one has. Written by the boot processor before it begins and when all are back.
static GAP: RwLock<Option<Gap>> = RwLock::new(None);
/// Every processor is to go to it.
static IS_OPEN: AtomicBool = AtomicBool::new(false);

/// What all CPUs need on their way.
pub struct Gap {
    /// To this image; `None`: a rehearsal, which leads nowhere.
    staged: Option<Staged>,
    /// A rehearsal's own.
    words: Takeover,
    blocks: Blocks,
    asked: u64,
    blackout: Blackout,
}

/// Whether the calling processor is to go to the gap.
#[inline]
pub fn is_open() -> bool {
    IS_OPEN.load(Ordering::Acquire)
}

/// Whether an NMI is one that was sent to fetch a processor from an image on trial: the processor may have been back
/// for long, and in a guest since, or all may have stayed in the new image, which is this one.
pub fn takes_nmi() -> bool {
    watchdog::takes_nmi() || is_open() || trial_pages::is_on_trial()
}

/// How long the gap may last before all go back, in microseconds.
pub fn limit_us() -> u64 {
    BOOT.get().map_or(UpdateLimit::Auto, |(_, options)| options.update_limit).us(smp::is_virtual())
}

/// Opens the gap: every processor comes at its next look.
pub fn open(staged: Staged, asked: u64) {
    let members = staged.parcel.members.iter().map(Member::cpu);
    let leader = members.clone().next().unwrap_or(BOOT_CPU);
    let mut blackout = Blackout::new(leader, members);
    let blocks = Blocks::new(&staged.parcel.baggage, staged.parcel.version);
    staged.parcel.baggage.forget_drafts();
    fault::point!(crate::lifecycle::faults::update::wait_on_the_way(
        &staged.crossing,
        staged.parcel.members.iter().map(|member| member.index),
        &mut blackout
    ));
    let limit = limit_us();
    if staged.parcel.next.image.trial_version() >= WATCHED_SINCE {
        watchdog::arm(limit + limit / WATCHDOG_SHARE);
    }
    let machine = Machine::new(leader.index, None);
    // All that can be done before this has been.
    blackout.begin(staged.crossing.takeover(), limit, &machine);
    *GAP.write() = Some(Gap { staged: Some(staged), words: Takeover::new(), blocks, asked, blackout });
    IS_OPEN.store(true, Ordering::Release);
    if let Some(gap) = &*current() {
        gap.blackout.interrupt_missing(&machine);
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
    /// One for the CPU `index` alone, which does all that is done in a gap, and stays.
    pub fn rehearsal(index: u32, blocks: Blocks) -> Self {
        let mut blackout = Blackout::new(BOOT_CPU, core::iter::once(Cpu { index, apic_id: 0 }));
        let words = Takeover::new();
        blackout.begin(&words, limit_us(), &Machine::new(index, None));
        Self { staged: None, words, blocks, asked: blackout.stopped(), blackout }
    }

    fn takeover(&self) -> &Takeover {
        self.staged.as_ref().map_or(&self.words, |staged| staged.crossing.takeover())
    }

    /// Where guests are saved.
    pub fn blocks(&self) -> &Blocks {
        &self.blocks
    }

    /// Where a self-test made CPUs wait on their way, and how often NMIs interrupted them there.
    #[cfg(feature = "faults")]
    pub fn waits(&self) -> Option<String> {
        let crossing = &self.staged.as_ref()?.crossing;
        crate::lifecycle::faults::update::waits(self.blackout.members().filter_map(|index| crossing.trial_page(index)))
    }

    /// Whether all are back.
    pub fn are_all_back(&self) -> bool {
        self.takeover().are_all_back()
    }

    /// How long after the order to stop the last processor came back.
    pub fn lasted_ns(&self) -> u64 {
        timer::ticks_to_ns(self.blackout.lasted())
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
            stopped: self.blackout.stopped().into(),
            parked: cpu::tsc().into(),
            left: cpu::tsc().into(),
        };
        self.blocks.save_host(&stamps, conversation)
    }
}
