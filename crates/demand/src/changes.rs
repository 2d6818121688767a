// SPDX-License-Identifier: MIT OR Apache-2.0
//! How blocks come and go.

use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use arrayvec::ArrayVec;

use crate::block::{BLOCK_BYTES, FLAGS, HIDDEN, THERE};
use crate::blocks::Blocks;
use crate::pending::SPARES;
use crate::source::{Claim, Source};

/// The outcome of a touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// The guest goes on.
    Now,
    /// It tries again later: the block is being released, or an update is under way.
    Later,
    /// It tries again later: the host has no memory for it.
    NoMemory,
}

/// The progress of hidden blocks' release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hiding {
    /// Nothing is hidden.
    Done,
    /// vCPUs may still reach something by their TLBs, or an update is under way.
    Waits,
}

/// Blocks as they are handed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed {
    /// The physical address of each block's frame; 0: it has none.
    pub frames: Vec<u64>,
    /// Physical addresses of spare frames, none of which is a block of `frames`.
    pub spares: ArrayVec<u64, SPARES>,
}

impl<S: Source> Blocks<S> {
    /// The guest has touched an address that it does not see: the block gets a frame, and `show` puts it into the
    /// guest's address space (guest address, physical address); false: it has no memory for that.
    pub fn touch(&self, gpa: u64, show: impl FnOnce(u64, u64) -> bool) -> Shown {
        let Some(number) = self.number(gpa) else { return Shown::Later };
        let mut changes = self.changes.lock();
        if self.entry(number) & HIDDEN != 0 {
            return Shown::Later;
        }
        if !self.give(&mut changes, number, false) {
            return if changes.is_held() { Shown::Later } else { Shown::NoMemory };
        }
        if show(self.gpa(number), self.entry(number) & !FLAGS) { Shown::Now } else { Shown::NoMemory }
    }

    /// The guest has freed a range: each whole block of it is hidden by `hide`, which takes its guest address and
    /// returns the change of the address space by which it is. False: not while an update is under way.
    pub fn hide(&self, gpa: u64, bytes: u64, mut hide: impl FnMut(u64) -> u64) -> bool {
        let mut changes = self.changes.lock();
        let (end, first) = (gpa.saturating_add(bytes), gpa.checked_next_multiple_of(BLOCK_BYTES));
        let mut at = first.unwrap_or(end);
        while !changes.is_held() && end.saturating_sub(at) >= BLOCK_BYTES && self.source.may_be_parted() {
            let Some(number) = self.number(at) else { break };
            let entry = self.entry(number);
            if entry & FLAGS == THERE && changes.hidden.try_push(number as u32).is_ok() {
                self.set_entry(number, entry | HIDDEN);
                changes.change = hide(at);
                self.has_hidden.store(true, Ordering::Release);
            }
            at += BLOCK_BYTES;
        }
        !changes.is_held()
    }

    /// Returns whether there are hidden blocks.
    pub fn has_hidden(&self) -> bool {
        self.has_hidden.load(Ordering::Acquire)
    }

    /// Each vCPU has flushed its TLB since this change of the address space: blocks that were hidden by then lose their
    /// frames.
    pub fn release_hidden(&self, known_change: u64) -> Hiding {
        let mut changes = self.changes.lock();
        if changes.hidden.is_empty() {
            return Hiding::Done;
        }
        if changes.is_held() || changes.change > known_change {
            return Hiding::Waits;
        }
        let _no_copies = self.copies.write();
        for number in changes.hidden.take() {
            let frame = self.set_entry(number as usize, 0) & !FLAGS;
            self.source.release(frame);
            if self.resident.fetch_sub(1, Ordering::Relaxed) <= self.assured {
                self.source.change_assured(BLOCK_BYTES, true);
            }
        }
        self.has_hidden.store(false, Ordering::Release);
        Hiding::Done
    }

    /// An update begins: nothing changes until [`settle`](Self::settle), but that spares become blocks. Returns what
    /// is there at that moment: whatever comes later is in [`spares_used`](Self::spares_used).
    pub fn hold(&self) -> Packed {
        let fresh = self.fresh_spares();
        let mut changes = self.changes.lock();
        changes.holds += 1;
        changes.spares.retain(|spare| spare.block.is_none());
        fresh.into_iter().filter_map(|physical| changes.keep(physical)).for_each(|more| self.source.release(more));
        // Before anything is touched: a spare that has become a block must not be handed over as both.
        let spares = changes.spares.iter().map(|spare| spare.physical).collect();
        Packed { frames: self.frames().collect(), spares }
    }

    /// Takes frames for spares, as many as blocks are missing. They may have to be cleared, which takes long: nothing
    /// is locked.
    fn fresh_spares(&self) -> ArrayVec<u64, SPARES> {
        let there = self.changes.lock().spares.iter().filter(|spare| spare.block.is_none()).count();
        let holes = self.count() - self.resident.load(Ordering::Relaxed) as usize;
        let wanted = holes.min(SPARES).saturating_sub(there);
        (0..wanted).map_while(|_| self.source.take(Claim::More)).collect()
    }

    /// The update is over: blocks change again, and spares that are left are given back.
    pub fn settle(&self) {
        let mut changes = self.changes.lock();
        changes.holds = changes.holds.saturating_sub(1);
        if changes.is_held() {
            return;
        }
        let left = changes.spares.take().into_iter().filter(|spare| spare.block.is_none());
        left.for_each(|spare| self.source.release(spare.physical));
    }

    /// The number of the block that each spare has become.
    pub fn spares_used(&self) -> [Option<u32>; SPARES] {
        let mut used = [None; SPARES];
        let spares = self.changes.lock();
        used.iter_mut().zip(&spares.spares).for_each(|(used, spare)| *used = spare.block);
        used
    }

    /// Spares have become these blocks in the image before. May be repeated with more.
    pub fn use_spares(&self, used: [Option<u32>; SPARES]) {
        let mut changes = self.changes.lock();
        for (spare, used) in changes.spares.iter_mut().zip(used) {
            let Some(block) = used.filter(|block| (*block as usize) < self.count()) else { continue };
            if spare.block.is_none() && self.entry(block as usize) & THERE == 0 {
                spare.block = Some(block);
                self.fill(block as usize, spare.physical);
            }
        }
    }

    /// Gives all frames back: the guest has ended. `is_kept`: something may reach them for good, and they get no other
    /// owner.
    pub fn release_all(&self, is_kept: bool) {
        let mut changes = self.changes.lock();
        changes.hidden.clear();
        self.source.change_assured(self.assured_bytes().saturating_sub(self.resident_bytes()), false);
        let spares = changes.spares.take().into_iter().filter(|spare| spare.block.is_none());
        let frames = (0..self.count()).map(|number| self.set_entry(number, 0) & !FLAGS).filter(|frame| *frame != 0);
        for frame in frames.chain(spares.map(|spare| spare.physical)).filter(|_| !is_kept) {
            self.source.release(frame);
        }
        self.resident.store(0, Ordering::Relaxed);
    }
}
