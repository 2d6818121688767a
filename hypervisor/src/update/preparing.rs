// SPDX-License-Identifier: MIT OR Apache-2.0
//! The new image prepares itself: it has the boot processor for a slice at a time, guests have it in between.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use ::update::trial::{BUSY_TICKS, TrialPage, word};
use core::sync::atomic::Ordering::Relaxed;
use wire::{Refusal, RefusalCode, UpdateReport};

use super::drafts::{Blocks, Drafts};
use crate::arch::boot::BUILD;
use crate::arch::crossing::trial::Return;
use crate::arch::percpu::BOOT_PROCESSOR;
use crate::arch::{cpu, timer, trap, watchdog};
use crate::kernel::timeline::{self, Name};
use crate::restart::staging::Staged;
use crate::start;

/// How long a slice is at most: guests on the boot processor wait for so long.
const SLICE_US: u64 = 250;
/// How long they have the processor before the next one.
const PAUSE_US: u64 = 250;
/// All slices together: many times what it takes, in an emulator too.
const LIMIT_US: u64 = 10_000_000;

/// An image that the watchdog finds so often in a row with interrupts masked hangs.
const MOST_BARKS: u32 = 2;
/// What is missing, and what that means. In the blackout CPUs that wait for a hanging one fetch it by NMIs.
const NO_WATCHDOG: &str = "no HPET timer has an I/O APIC input of its own; if it hangs so while it prepares itself, \
                           or on all CPUs in the blackout, the host hangs";
/// How long processors may take to save their guests once. On a crowded emulator one may wait for a core.
const DRAFTS_LIMIT_US: u64 = 2_000_000;

/// A new image that prepares itself. Dropped, it is gone and its memory is free again.
pub struct Preparing {
    staged: Staged,
    /// While guests' state is still being saved for it, and until when that may take.
    drafts: Option<(Drafts, u64)>,
    asked: u64,
    spent_ticks: u64,
    slices: u32,
    /// How often in a row the watchdog found it with interrupts masked.
    barks: u32,
    next_slice: u64,
    _span: timeline::Span,
}

/// How far it is.
pub enum Progress {
    /// It goes on.
    UnderWay(Preparing),
    /// It has prepared everything.
    Prepared(Preparing),
    /// It is gone, and this is why.
    Failed(Refusal),
}

impl Preparing {
    /// Lets an image that is staged begin at the next [`Self::turn`]. The update was asked for at this time.
    pub fn begin(staged: Staged, asked: u64) -> Self {
        let record = staged.parcel.record.range().start();
        let entry = staged.parcel.next.image.note().entry.get();
        staged.parcel.members.iter().for_each(|member| staged.crossing.prepare_page(member.index));
        staged.crossing.begin_trial(BOOT_PROCESSOR, entry, record.0);
        let parcel = &staged.parcel;
        let blocks = Blocks::new(&parcel.baggage, parcel.version);
        let order = Drafts::order(blocks, parcel.members.iter().map(|member| member.index));
        if !start::prepare_watchdog() {
            log::warn!("update: nothing watches the new image while it has interrupts masked: {NO_WATCHDOG}");
        }
        let drafts = Some((order, cpu::tsc() + timer::us_to_ticks(DRAFTS_LIMIT_US)));
        let span = timeline::span(Name::UpdatePrepare, staged.parcel.generation as u32);
        Self { staged, drafts, asked, spent_ticks: 0, slices: 0, barks: 0, next_slice: 0, _span: span }
    }

    /// When it was asked for.
    pub fn asked(&self) -> u64 {
        self.asked
    }

    /// What is ready to go.
    pub fn into_staged(self) -> Staged {
        if let Some(page) = self.staged.crossing.trial_page(BOOT_PROCESSOR) {
            page.stamps[BUSY_TICKS].store(self.spent_ticks, Relaxed);
        }
        self.staged
    }

    /// When the next slice is due.
    pub fn alarm(&self) -> u64 {
        self.next_slice
    }

    /// A slice, if one is due. For the boot processor, whose guests wait meanwhile.
    pub fn turn(mut self) -> Progress {
        let began = cpu::tsc();
        if began < self.next_slice {
            return Progress::UnderWay(self);
        }
        if let Some((drafts, until)) = &mut self.drafts {
            match drafts.outcome() {
                None if began > *until => return failed("a processor does not save its guests"),
                None => {
                    self.next_slice = began + timer::us_to_ticks(PAUSE_US);
                    return Progress::UnderWay(self);
                }
                Some(Err(problem)) => return failed(&problem),
                Some(Ok(())) if !self.staged.parcel.baggage.has_all_vcpus() => {
                    return Progress::Failed(guests_have_changed());
                }
                Some(Ok(())) => self.drafts = None,
            }
        }
        timer::set_alarm(began + timer::us_to_ticks(SLICE_US));
        let patience_us = super::limit_us();
        watchdog::arm(patience_us);
        let end = self.staged.crossing.resume_trial(BOOT_PROCESSOR);
        watchdog::disarm();
        let now = cpu::tsc();
        self.spent_ticks += now - began;
        self.slices += 1;
        self.next_slice = now + timer::us_to_ticks(PAUSE_US);
        match end {
            Some(Return::Interrupt(trap::vector::NMI)) if now - began >= timer::us_to_ticks(patience_us / 2) => {
                self.barked()
            }
            Some(Return::Interrupt(vector)) => {
                self.barks = 0;
                trap::deliver(vector);
                self.go_on()
            }
            Some(Return::Word(word::PREPARED, _)) => Progress::Prepared(self),
            other => {
                let page = self.staged.crossing.trial_page(BOOT_PROCESSOR);
                failed(&super::reason_of(other, page))
            }
        }
    }

    /// The watchdog has gone off. Once is no proof: the emulator may have kept the processor away while interrupts were
    /// masked for a moment.
    fn barked(mut self) -> Progress {
        let page = self.staged.crossing.trial_page(BOOT_PROCESSOR);
        self.barks = if page.is_none_or(TrialPage::were_interrupts_masked) { self.barks + 1 } else { 0 };
        match self.barks {
            MOST_BARKS.. => failed("it hangs with interrupts masked"),
            _ => self.go_on(),
        }
    }

    fn go_on(self) -> Progress {
        if self.spent_ticks > timer::us_to_ticks(LIMIT_US) {
            return failed(&format!("it was not prepared after {} s", LIMIT_US / 1_000_000));
        }
        Progress::UnderWay(self)
    }

    /// What there is to say of it when it is given up although it could go on.
    pub fn dry_run_report(&self) -> UpdateReport {
        let parcel = &self.staged.parcel;
        let advance = parcel.advance.as_ref().map_or(0, |advance| advance.range().bytes());
        UpdateReport {
            is_dry_run: true,
            generation: parcel.generation,
            old_version: env!("CARGO_PKG_VERSION").to_string(),
            new_version: parcel.next.image.note().version().to_string(),
            preparation_ns: timer::ticks_to_ns(cpu::tsc() - self.asked),
            preparation_busy_ns: timer::ticks_to_ns(self.spent_ticks),
            slices: self.slices,
            memory_bytes: parcel.next.slot.range().bytes() + advance,
            gap_ns: 0,
            processors: Vec::new(),
            old_build: BUILD.to_string(),
            new_build: parcel.next.image.build().to_string(),
        }
    }
}

/// What the new image was told of guests or of damaged memory is out of date.
pub fn guests_have_changed() -> Refusal {
    let reason =
        "a guest started, ended or was paused, or memory was found damaged, while the new image prepared itself"
            .to_string();
    Refusal { code: RefusalCode::WrongState, reason, mend: "update again".to_string() }
}

fn failed(reason: &str) -> Progress {
    let reason = bounded(&format!("the new image failed while it prepared itself: {reason}"));
    log::error!("update: {reason}");
    Progress::Failed(Refusal { code: RefusalCode::Failed, reason, mend: "use another image".into() })
}

fn bounded(text: &str) -> String {
    wire::bounded(text, wire::MAX_REASON_BYTES).to_string()
}
