// SPDX-License-Identifier: MIT OR Apache-2.0
//! The blackout: every CPU leaves its guests, saves them, and goes to the new image; or all stay.
//! [`::update::outbound`] decides the order of a CPU's steps; the steps are here. Nothing here allocates, and no wait
//! is without a limit.
//!
//! Before, while guests go on, each CPU takes the same way alone, and stays ([`HostBlackout::rehearsal`]): code that
//! has run lately is in caches, and in an emulator translated, when all guests wait for it.

mod way;

use alloc::string::String;
use core::sync::atomic::{AtomicBool, Ordering};

use ::update::blackout::Blackout;
use ::update::platform::Cpu;
use ::update::takeover::Takeover;
use boot::options::UpdateLimit;
use handover::image::REMAPPED_SINCE;
use handover::layout::Stamps;
use handover::state::ControlStream;
use spin::{RwLock, RwLockReadGuard};

use super::blocks::Blocks;
use super::machine::Machine;
use crate::arch::percpu::BOOT_CPU;
use crate::arch::{cpu, fault, smp, timer, watchdog};
use crate::kernel::cpus::Member;
use crate::kernel::inherited::ChannelState;
use crate::kernel::interrupts;
use crate::kernel::platform::options;
use crate::kernel::trial_pages;
use crate::lifecycle::restart::hand_over::Staged;

/// The watchdog has so much more patience than the CPUs, as a share of theirs.
const WATCHDOG_SHARE: u64 = 4;
/// The version of the pages between images since which a watchdog may go off after a new image has taken over.
const WATCHED_SINCE: u32 = 2;
/// The CPU that opens it and answers; it is never sent an NMI by its identifier.
const LEADER: Cpu = Cpu { index: BOOT_CPU, apic_id: 0 };

/// The blackout that has begun, if one has. Written by the boot CPU before it begins and when all are back.
static BLACKOUT: RwLock<Option<HostBlackout>> = RwLock::new(None);
/// Every CPU is to go to it.
static IS_OPEN: AtomicBool = AtomicBool::new(false);

/// The data that all CPUs need on their way.
pub struct HostBlackout {
    /// To this image; `None`: a rehearsal, which leads nowhere.
    staged: Option<Staged>,
    /// A rehearsal's own.
    words: Takeover,
    blocks: Blocks,
    asked: u64,
    blackout: Blackout,
}

/// Returns whether the calling CPU is to go to the blackout.
#[inline]
pub fn is_open() -> bool {
    IS_OPEN.load(Ordering::Acquire)
}

/// Returns whether an NMI is one that was sent to fetch a CPU from an image on trial: the CPU may have been back
/// for long, and in a guest since, or all may have stayed in the new image, which is this one.
pub fn takes_nmi() -> bool {
    watchdog::takes_nmi() || is_open() || trial_pages::is_on_trial()
}

/// Returns how long the blackout may last before all go back, in microseconds.
pub fn limit_us() -> u64 {
    options().map_or(UpdateLimit::Auto, |options| options.update_limit).us(smp::is_virtual())
}

/// Opens the blackout: every CPU comes at its next check.
pub fn open(staged: Staged, asked: u64) {
    let members = staged.hand_over.members.iter().map(Member::cpu);
    let leader = members.clone().next().unwrap_or(LEADER);
    let mut blackout = Blackout::new(leader, members);
    let blocks = Blocks::new(&staged.hand_over.hand_over_state, staged.hand_over.reader());
    staged.hand_over.hand_over_state.clear_drafts();
    fault::point!(crate::lifecycle::faults::update::wait_on_the_way(
        &staged.switch_pages,
        staged.hand_over.members.iter().map(|member| member.index),
        &mut blackout
    ));
    let limit = limit_us();
    if staged.hand_over.next.image.iommu_version() < REMAPPED_SINCE {
        interrupts::pass_interrupts();
    }
    if staged.hand_over.next.image.trial_version() >= WATCHED_SINCE {
        watchdog::arm(limit + limit / WATCHDOG_SHARE);
    }
    let machine = Machine::new(leader.index, None);
    // All that can be done before this has been.
    blackout.begin(staged.switch_pages.takeover(), limit, &machine);
    *BLACKOUT.write() = Some(HostBlackout { staged: Some(staged), words: Takeover::new(), blocks, asked, blackout });
    IS_OPEN.store(true, Ordering::Release);
    if let Some(blackout) = &*current() {
        blackout.blackout.interrupt_missing(&machine);
    }
}

/// The blackout, for a CPU that comes to it.
pub fn current() -> RwLockReadGuard<'static, Option<HostBlackout>> {
    BLACKOUT.read()
}

/// Closes the blackout once all CPUs are back, and drops the rest of the new image. For the boot CPU.
pub fn close() -> Option<HostBlackout> {
    watchdog::disarm();
    IS_OPEN.store(false, Ordering::Release);
    interrupts::remap_interrupts_again();
    BLACKOUT.write().take()
}

impl HostBlackout {
    /// One for the CPU `index` alone, which does all that is done in a blackout, and stays.
    pub fn rehearsal(index: u32, blocks: Blocks) -> Self {
        let mut blackout = Blackout::new(LEADER, core::iter::once(Cpu { index, apic_id: 0 }));
        let words = Takeover::new();
        blackout.begin(&words, limit_us(), &Machine::new(index, None));
        Self { staged: None, words, blocks, asked: blackout.stopped(), blackout }
    }

    fn takeover(&self) -> &Takeover {
        self.staged.as_ref().map_or(&self.words, |staged| staged.switch_pages.takeover())
    }

    /// Returns where guests are saved.
    pub fn blocks(&self) -> &Blocks {
        &self.blocks
    }

    /// Returns where a self-test made CPUs wait on their way, and how often NMIs interrupted them there.
    #[cfg(feature = "faults")]
    pub fn waits(&self) -> Option<String> {
        let switch_pages = &self.staged.as_ref()?.switch_pages;
        crate::lifecycle::faults::update::waits(
            self.blackout.members().filter_map(|index| switch_pages.trial_page(index)),
        )
    }

    /// Returns whether all are back.
    pub fn are_all_back(&self) -> bool {
        self.takeover().are_all_back()
    }

    /// Returns how long after the order to stop the last CPU came back.
    pub fn lasted_ns(&self) -> u64 {
        timer::ticks_to_ns(self.blackout.lasted())
    }

    /// The CPU that rolled back.
    pub fn blamed(&self) -> Option<u32> {
        self.takeover().blamed()
    }

    /// Saves the host's own last state: the control channel's state, and the time stamps.
    ///
    /// # Errors
    /// It finds no room.
    pub fn save_host(&self, channel_state: &ChannelState, streams: &[ControlStream]) -> Result<(), String> {
        let stamps = Stamps {
            asked: self.asked.into(),
            stopped: self.blackout.stopped().into(),
            parked: cpu::tsc().into(),
            left: cpu::tsc().into(),
        };
        self.blocks.save_host(&stamps, channel_state, streams)
    }
}
