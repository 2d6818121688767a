// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames that no CPU can write, for as long as they are locked: the direct map shows them read-only.

use core::sync::atomic::{AtomicU64, Ordering};

use paging::Flags;
use units::PhysRange;

use super::address::DIRECT_MAP;
use super::memory::{self, OwnedFrames};
use super::percpu::{self, PerCpu};
use super::reminder::Reminder;
use super::{apic, cpu, timer, trap};

/// The time that a CPU may take to flush its TLB. It does so as soon as it takes interrupts; but an emulator on
/// a crowded machine may let one wait for seconds.
const LIMIT_US: u64 = 5_000_000;

/// CPUs are asked to flush their TLBs for so many times. Only the CPU that serves the control channel asks.
static ROUND: AtomicU64 = AtomicU64::new(0);

/// Frames that are locked; dropped, they can be written again, and are given back.
pub struct LockedFrames(Option<OwnedFrames>);

/// The reason for which frames could not be locked; they are given back.
#[derive(Clone, Copy, Debug)]
pub enum LockError {
    /// No memory for a page table.
    OutOfMemory,
    /// This CPU did not flush its TLB in time.
    Unresponsive(u32),
}

impl LockedFrames {
    /// Locks frames.
    pub fn lock(frames: OwnedFrames) -> Result<Self, LockError> {
        protect(frames.range(), Flags::empty()).map_err(|()| LockError::OutOfMemory)?;
        let locked = Self(Some(frames));
        shoot_down_everywhere().map_err(LockError::Unresponsive)?;
        Ok(locked)
    }

    /// Returns where they are.
    pub fn range(&self) -> PhysRange {
        self.0.as_ref().map(OwnedFrames::range).unwrap_or_default()
    }

    /// Returns what they hold.
    pub fn bytes(&self) -> &[u8] {
        self.0.as_ref().map(OwnedFrames::bytes).unwrap_or_default()
    }
}

impl Drop for LockedFrames {
    fn drop(&mut self) {
        let Some(frames) = self.0.take() else { return };
        // Rights that were there before take no table. A CPU must not be given the frames while its TLB still holds the
        // lock.
        let is_open = protect(frames.range(), Flags::WRITABLE).is_ok() && shoot_down_everywhere().is_ok();
        if !is_open {
            log::error!("memory {} stays locked: a CPU did not answer the TLB shootdown", frames.range());
            frames.leak();
        }
    }
}

fn protect(range: PhysRange, rights: Flags) -> Result<(), ()> {
    let flags = rights | Flags::NO_EXECUTE | Flags::GLOBAL;
    let changed = memory::with_host_tables(|tables, frames| {
        tables.protect(frames, DIRECT_MAP + range.start().0, range.bytes(), flags)
    });
    changed.ok_or(())?.map_err(|_| ())
}

/// Makes every CPU flush its TLB; the error is one that has not.
fn shoot_down_everywhere() -> Result<(), u32> {
    let round = ROUND.fetch_add(1, Ordering::AcqRel) + 1;
    memory::flush_translations();
    let others = || percpu::indices().filter(|index| *index != PerCpu::current().index).filter_map(percpu::of);
    others().for_each(ask);
    let mut reminder = Reminder::new();
    let deadline = cpu::tsc().wrapping_add(timer::us_to_ticks(LIMIT_US));
    // One that left meanwhile, or came, has loaded its tables since.
    let unresponsive = || others().filter(|other| other.flushed_at.load(Ordering::Acquire) < round && other.is_here());
    while let Some(first) = unresponsive().next() {
        if reminder.is_due() {
            unresponsive().for_each(ask);
        }
        if (cpu::tsc().wrapping_sub(deadline) as i64) >= 0 {
            return Err(first.index);
        }
        cpu::pause();
    }
    Ok(())
}

fn ask(other: &PerCpu) {
    apic::send(other.apic_id, trap::vector::FLUSH_TLB);
}

/// The calling CPU was asked to flush its TLB.
pub fn interrupted() {
    let round = ROUND.load(Ordering::Acquire);
    memory::flush_translations();
    PerCpu::current().flushed_at.store(round, Ordering::Release);
}
