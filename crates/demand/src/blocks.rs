// SPDX-License-Identifier: MIT OR Apache-2.0
//! The blocks of a guest: where each is, and the ways to its bytes.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use spin::{Mutex, RwLock, RwLockReadGuard};

use crate::block::{BLOCK_BYTES, FLAGS, THERE};
use crate::layout::Layout;
use crate::pending::Changes;
use crate::source::{Claim, Source};

/// A range that is not all memory of the guest, or that has no frame and gets none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outside;

/// The blocks of a guest. Any CPU may call any method at any time.
#[derive(Debug)]
pub struct Blocks<S> {
    pub(crate) source: S,
    layout: Layout,
    entries: Box<[AtomicU64]>,
    pub(crate) assured: u64,
    /// Blocks that are there.
    pub(crate) resident: AtomicU64,
    pub(crate) has_hidden: AtomicBool,
    /// Held while bytes are copied, so that no frame leaves meanwhile. A CPU that holds it does not take `changes`.
    pub(crate) copies: RwLock<()>,
    pub(crate) changes: Mutex<Changes>,
}

/// The bytes of a guest, none of which leaves while this is held.
pub struct Copying<'a, S> {
    blocks: &'a Blocks<S>,
    _held: RwLockReadGuard<'a, ()>,
}

impl<S: Source> Blocks<S> {
    /// None of `bytes` bytes is there. The source has assured `assured_bytes` of them.
    pub fn new(source: S, layout: Layout, bytes: u64, assured_bytes: u64) -> Self {
        Self::of(source, layout, (0..bytes / BLOCK_BYTES).map(|_| 0), assured_bytes)
    }

    /// Blocks from the image before, of which some are there: the physical address of each, or 0; and of spares.
    /// Nothing changes before [`settle`](Self::settle).
    pub fn adopt(
        source: S,
        layout: Layout,
        frames: impl Iterator<Item = u64>,
        spares: impl Iterator<Item = u64>,
        assured_bytes: u64,
    ) -> Self {
        let this = Self::of(source, layout, frames, assured_bytes);
        this.source.change_assured(this.missing_bytes(), true);
        this.changes.lock().adopt(spares);
        this
    }

    fn of(source: S, layout: Layout, frames: impl Iterator<Item = u64>, assured_bytes: u64) -> Self {
        let entry = |frame: u64| if frame == 0 { 0 } else { frame & !FLAGS | THERE };
        let entries: Box<[AtomicU64]> = frames.map(|frame| AtomicU64::new(entry(frame))).collect();
        let there = entries.iter().filter(|entry| entry.load(Ordering::Relaxed) != 0).count();
        let (resident, assured) = (AtomicU64::new(there as u64), assured_bytes / BLOCK_BYTES);
        let (has_hidden, copies, changes) = (AtomicBool::new(false), RwLock::new(()), Mutex::default());
        Self { source, layout, entries, assured, resident, has_hidden, copies, changes }
    }

    /// Bytes of memory as the guest sees it.
    pub fn bytes(&self) -> u64 {
        self.entries.len() as u64 * BLOCK_BYTES
    }

    /// Bytes that are there.
    pub fn resident_bytes(&self) -> u64 {
        self.resident.load(Ordering::Relaxed) * BLOCK_BYTES
    }

    /// Bytes that it was assured.
    pub fn assured_bytes(&self) -> u64 {
        self.assured * BLOCK_BYTES
    }

    fn missing_bytes(&self) -> u64 {
        self.assured_bytes().saturating_sub(self.resident_bytes())
    }

    /// The physical address of each block's frame; 0: it has none.
    pub fn frames(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.entries.len()).map(|number| self.entry(number) & !FLAGS)
    }

    /// The blocks that are there, in pieces as large as possible: guest address, physical address and bytes of each.
    pub fn pieces(&self) -> Vec<(u64, u64, u64)> {
        let mut pieces: Vec<(u64, u64, u64)> = Vec::new();
        for (number, frame) in self.frames().enumerate().filter(|(_, frame)| *frame != 0) {
            let gpa = self.layout.gpa(number);
            match pieces.last_mut() {
                Some((at, to, bytes)) if *at + *bytes == gpa && *to + *bytes == frame => *bytes += BLOCK_BYTES,
                _ => pieces.push((gpa, frame, BLOCK_BYTES)),
            }
        }
        pieces
    }

    /// Holds the bytes where they are while they are read.
    pub fn reading(&self, gpa: u64, bytes: usize) -> Result<Copying<'_, S>, Outside> {
        self.check(gpa, bytes)?;
        Ok(Copying { blocks: self, _held: self.copies.read() })
    }

    /// Gives frames to the blocks of a range into which a device is to write, and holds the bytes where they are.
    ///
    /// # Errors
    /// [`Outside`]; some of the blocks may have got frames.
    pub fn writing(&self, gpa: u64, bytes: usize) -> Result<Copying<'_, S>, Outside> {
        self.check(gpa, bytes)?;
        let first = gpa - gpa % BLOCK_BYTES;
        for at in (first..gpa + bytes as u64).step_by(BLOCK_BYTES as usize) {
            let number = self.number(at).ok_or(Outside)?;
            if self.entry(number) & THERE == 0 && !self.give(&mut self.changes.lock(), number, true) {
                return Err(Outside);
            }
        }
        Ok(Copying { blocks: self, _held: self.copies.read() })
    }

    /// Gives a block a frame if it has none; returns false if there is none for it.
    pub(crate) fn give(&self, changes: &mut Changes, number: usize, is_device: bool) -> bool {
        if self.entry(number) & THERE != 0 {
            return true;
        }
        let claim = match self.resident.load(Ordering::Relaxed) < self.assured {
            true => Claim::Assured,
            false if is_device => Claim::Device,
            false => Claim::More,
        };
        let frame = if changes.is_held() { changes.use_spare(number, is_device) } else { self.source.take(claim) };
        frame.inspect(|frame| self.fill(number, *frame)).is_some()
    }

    /// A frame becomes a block.
    pub(crate) fn fill(&self, number: usize, physical: u64) {
        if self.resident.fetch_add(1, Ordering::Relaxed) < self.assured {
            self.source.change_assured(BLOCK_BYTES, false);
        }
        self.set_entry(number, physical | THERE);
    }

    /// Refuses a range that is not all memory.
    ///
    /// # Errors
    /// [`Outside`].
    pub fn check(&self, gpa: u64, bytes: usize) -> Result<(), Outside> {
        let more = (bytes as u64).max(1) - 1;
        let first = self.number(gpa).ok_or(Outside)?;
        let last = self.number(gpa.checked_add(more).ok_or(Outside)?).ok_or(Outside)?;
        // From the lower part to the upper one numbers are consecutive, and addresses are not.
        let is_one_piece = self.layout.gpa(last) - self.layout.gpa(first) == (last - first) as u64 * BLOCK_BYTES;
        is_one_piece.then_some(()).ok_or(Outside)
    }

    pub(crate) fn number(&self, gpa: u64) -> Option<usize> {
        self.layout.number(gpa, self.entries.len())
    }

    pub(crate) fn gpa(&self, number: usize) -> u64 {
        self.layout.gpa(number)
    }

    pub(crate) fn count(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn entry(&self, number: usize) -> u64 {
        self.entries.get(number).map_or(0, |entry| entry.load(Ordering::Acquire))
    }

    pub(crate) fn set_entry(&self, number: usize, value: u64) -> u64 {
        self.entries.get(number).map_or(0, |entry| entry.swap(value, Ordering::AcqRel))
    }
}

impl<S: Source> Copying<'_, S> {
    /// Calls `act` for the part of a range in each block, with its physical address; `None`: it has no frame, and reads
    /// as zeros.
    pub fn each_part(&self, gpa: u64, bytes: usize, mut act: impl FnMut(Option<u64>, Range<usize>)) {
        let mut at = 0;
        while at < bytes {
            let place = gpa + at as u64;
            let offset = place % BLOCK_BYTES;
            let end = bytes.min(at + (BLOCK_BYTES - offset) as usize);
            let entry = self.blocks.number(place).map_or(0, |number| self.blocks.entry(number));
            act((entry & THERE != 0).then_some((entry & !FLAGS) + offset), at..end);
            at = end;
        }
    }
}
