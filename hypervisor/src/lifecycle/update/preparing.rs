// SPDX-License-Identifier: MIT OR Apache-2.0
//! The new image prepares itself: it has the boot CPU for a slice at a time, guests have it in between.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use ::update::order::Progress;
use ::update::prepare::{self, Failure, LIMIT_US, Preparation, SLICE_US, SliceEnd, Turn};
use ::update::trial::{BUSY_TICKS, TrialPage, word};
use core::sync::atomic::Ordering::Relaxed;
use wire::{Refusal, RefusalCode, UpdateReport};

use super::blackout::limit_us;
use super::blocks::Blocks;
use super::drafts::Drafts;
use super::problem::reason_of;
use crate::arch::boot::BUILD;
use crate::arch::percpu::BOOT_CPU;
use crate::arch::switch_pages::trial::Return;
use crate::arch::tsc::Tsc;
use crate::arch::{cpu, timer, trap, watchdog};
use crate::kernel::cpus::Member;
use crate::kernel::interrupts;
use crate::kernel::timeline::{self, Name};
use crate::lifecycle::restart::hand_over::Staged;

/// The warning of a missing watchdog, and its consequence. In the blackout CPUs that wait for a hanging one fetch it by
/// NMIs.
const NO_WATCHDOG: &str = "no HPET timer has an I/O APIC input of its own; if it hangs so while it prepares itself, \
                           or on all CPUs in the blackout, the host hangs";
/// A new image that prepares itself. Dropped, it is gone and its memory is free again.
pub struct Preparing {
    staged: Staged,
    /// While guests' state is still being saved for it.
    drafts: Option<Drafts>,
    asked: u64,
    state: Preparation,
    _span: timeline::Span,
}

impl Preparing {
    /// Lets an image that is staged begin at the next [`Self::turn`]. The update was asked for at this time.
    pub fn begin(staged: Staged, asked: u64) -> Self {
        let record = staged.hand_over.record.range().start();
        let entry = staged.hand_over.next.image.note().entry.get();
        staged.hand_over.members.iter().for_each(|member| staged.switch_pages.prepare_page(member.index));
        staged.switch_pages.begin_trial(BOOT_CPU, entry, record.0);
        let hand_over = &staged.hand_over;
        let blocks = Blocks::new(&hand_over.hand_over_state, hand_over.reader());
        let order = Drafts::order(blocks, hand_over.members.iter().map(Member::cpu));
        if !interrupts::prepare_watchdog() {
            log::warn!("update: nothing watches the new image while it has interrupts masked: {NO_WATCHDOG}");
        }
        let state = Preparation::begin(limit_us(), &Tsc);
        let span = timeline::span(Name::UpdatePrepare, staged.hand_over.generation as u32);
        Self { staged, drafts: Some(order), asked, state, _span: span }
    }

    /// Returns when it was asked for.
    pub fn asked(&self) -> u64 {
        self.asked
    }

    /// Returns the refusal if a guest is not what the new image was given about it any more.
    pub fn outdated(&self) -> Option<Refusal> {
        self.staged.hand_over.hand_over_state.change().map(|change| is_outdated(&change))
    }

    /// Returns what is ready to go.
    pub fn into_staged(self) -> Staged {
        if let Some(page) = self.staged.switch_pages.trial_page(BOOT_CPU) {
            page.stamps[BUSY_TICKS].store(self.state.spent(), Relaxed);
        }
        self.staged
    }

    /// Returns when the next slice is due.
    pub fn alarm(&self) -> u64 {
        self.state.alarm()
    }

    /// Runs a slice, if one is due. For the boot CPU: its guests wait meanwhile.
    pub fn turn(mut self) -> Progress<Self, Refusal> {
        let (staged, drafts) = (&self.staged, &mut self.drafts);
        let mut problem = String::new();
        let turn = self.state.turn(&Tsc, || state_of(drafts, staged, &mut problem));
        match turn {
            Turn::Wait => Progress::UnderWay(self),
            Turn::Slice => self.slice(),
            Turn::Failed(failure) => Progress::Failed(refusal(failure, &problem)),
        }
    }

    fn slice(mut self) -> Progress<Self, Refusal> {
        self.drafts = None;
        let began = cpu::tsc();
        timer::set_alarm(began + timer::us_to_ticks(SLICE_US));
        watchdog::arm(self.state.watchdog_us());
        let back = self.staged.switch_pages.resume_trial(BOOT_CPU);
        watchdog::disarm();
        let ended = cpu::tsc();
        let page = self.staged.switch_pages.trial_page(BOOT_CPU);
        let end = match back {
            Some(Return::Interrupt(trap::vector::NMI)) if self.state.is_watchdog(began, ended, &Tsc) => {
                SliceEnd::Watchdog { was_masked: page.is_none_or(TrialPage::were_interrupts_masked) }
            }
            Some(Return::Interrupt(vector)) => {
                trap::deliver(vector);
                SliceEnd::Interrupt
            }
            Some(Return::Word(word::PREPARED, _)) => SliceEnd::Prepared,
            _ => SliceEnd::Failed,
        };
        match self.state.end_slice(began, ended, end, &Tsc) {
            prepare::Progress::UnderWay => Progress::UnderWay(self),
            prepare::Progress::Prepared => Progress::Prepared(self),
            prepare::Progress::Failed(failure) => {
                let problem = if failure == Failure::Ended { reason_of(back, page) } else { String::new() };
                Progress::Failed(refusal(failure, &problem))
            }
        }
    }

    /// Returns what there is to report of it when it is given up although it could go on.
    pub fn dry_run_report(&self) -> UpdateReport {
        let hand_over = &self.staged.hand_over;
        let staging_memory =
            hand_over.staging_memory.as_ref().map_or(0, |staging_memory| staging_memory.range().bytes());
        UpdateReport {
            is_dry_run: true,
            generation: hand_over.generation,
            old_version: env!("CARGO_PKG_VERSION").to_string(),
            new_version: hand_over.next.image.note().version().to_string(),
            preparation_ns: timer::ticks_to_ns(cpu::tsc() - self.asked),
            preparation_busy_ns: timer::ticks_to_ns(self.state.spent()),
            slices: self.state.slices(),
            memory_bytes: hand_over.next.slot.range().bytes() + staging_memory,
            blackout_ns: 0,
            cpus: Vec::new(),
            old_build: BUILD.to_string(),
            new_build: hand_over.next.image.build().to_string(),
            signer: hand_over.next.signer.map(|key| key.id().to_string()),
        }
    }
}

/// Returns the refusal for a new image with an outdated record of guests or of damaged memory.
fn is_outdated(change: &str) -> Refusal {
    let reason = format!("{change} while the new image prepared itself");
    Refusal { code: RefusalCode::WrongState, reason, hint: "update again".to_string() }
}

/// Returns what has come of the drafts; `problem` is set if one could not be saved.
fn state_of(drafts: &mut Option<Drafts>, staged: &Staged, problem: &mut String) -> prepare::Drafts {
    match drafts.as_mut().map(Drafts::outcome) {
        Some(None) => prepare::Drafts::Missing,
        Some(Some(Err(why))) => {
            *problem = why;
            prepare::Drafts::Failed
        }
        Some(Some(Ok(()))) => match staged.hand_over.hand_over_state.lacking_vcpu() {
            Some(change) => {
                *problem = change;
                prepare::Drafts::Outdated
            }
            None => prepare::Drafts::Saved,
        },
        None => prepare::Drafts::Saved,
    }
}

/// `problem`: what there is to report of it beside that.
fn refusal(failure: Failure, problem: &str) -> Refusal {
    let why = match failure {
        Failure::GuestsChanged => return is_outdated(problem),
        Failure::DraftsLate => "a CPU does not save its guests",
        Failure::Hangs => "it hangs with interrupts masked",
        Failure::TooLong => return failed(&format!("it was not prepared after {} s", LIMIT_US / 1_000_000)),
        Failure::DraftFailed | Failure::Ended => problem,
    };
    failed(why)
}

fn failed(why: &str) -> Refusal {
    let reason = bounded(&format!("the new image failed while it prepared itself: {why}"));
    log::error!("update: {reason}");
    Refusal { code: RefusalCode::Failed, reason, hint: "use another image".into() }
}

fn bounded(text: &str) -> String {
    wire::bounded(text, wire::MAX_REASON_BYTES).to_string()
}
