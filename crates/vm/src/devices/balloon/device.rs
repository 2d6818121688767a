// SPDX-License-Identifier: MIT OR Apache-2.0
//! The device: what its driver finds, and the work of one turn.

use alloc::boxed::Box;

use ::virtio::{Chain, Fault};
use demand::{Partial, SPARES};
use handover::Full;
use handover::state::{self, DeviceKind};
use zerocopy::FromBytes as _;

use super::config::{
    ACTUAL, BYTES, DEFLATE, FEATURES, INFLATE, PAGE_BYTES, QUEUE_SIZES, REPORTS, REPORTS_OF_OLD, STATISTICS,
};
use super::pages;
use super::statistics::Statistics;
use crate::devices::virtio::{Io, VirtioDevice};
use crate::devices::{StateError, piece};

/// A spare block that has become none, in the state.
const NO_BLOCK: u32 = u32::MAX;
/// Chains that one turn takes of each queue.
const CHAINS: u32 = 16;

/// The host, to which memory goes back.
pub trait Frees: Send {
    /// The guest has freed a range, of which the host hides what it can release. False: not now.
    fn hide(&mut self, gpa: u64, bytes: u64) -> bool;

    /// Returns whether something is hidden that is not released yet.
    fn is_releasing(&mut self) -> bool;

    /// The blocks that spare ones have become while an update is under way.
    fn spares_used(&self) -> [Option<u32>; SPARES];

    /// Spare ones have become these blocks in the image before.
    fn use_spares(&mut self, used: [Option<u32>; SPARES]);
}

/// The device.
#[derive(Debug)]
pub struct Balloon<F> {
    frees: F,
    /// Pages that the host wants in the balloon.
    wanted: u32,
    /// Pages that the driver states to be in it.
    actual: u32,
    partial: Partial,
    chain: Box<Chain>,
    /// The queue whose next chain names memory that is being released.
    releasing: Option<u16>,
    statistics: Statistics,
    /// The host wants newer statistics.
    wants_statistics: bool,
}

impl<F: Frees> Balloon<F> {
    /// An empty balloon.
    pub fn new(frees: F) -> Self {
        let (partial, chain, statistics) = (Partial::default(), Box::default(), Statistics::default());
        let (wanted, actual, releasing, wants_statistics) = (0, 0, None, false);
        Self { frees, wanted, actual, partial, chain, releasing, statistics, wants_statistics }
    }

    /// The guest's statistics, as it has stated them last.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// Bytes in the balloon.
    pub fn bytes(&self) -> u64 {
        u64::from(self.actual) * PAGE_BYTES
    }

    /// Asks the guest to have so many bytes in its balloon. How soon it does, and whether, is its own affair.
    pub fn ask(&mut self, bytes: u64, io: &mut Io<'_>) {
        self.wanted = u32::try_from(bytes / PAGE_BYTES).unwrap_or(u32::MAX);
        io.change_config();
    }

    /// Asks the guest for newer statistics, in the next turn.
    pub fn ask_for_statistics(&mut self) {
        self.wants_statistics = true;
    }

    /// Takes chains, a bounded number. Returns whether there may be more for it: it is to be called again, also when a
    /// release is over.
    ///
    /// # Errors
    /// The driver's [`Fault`].
    pub fn work(&mut self, io: &mut Io<'_>) -> Result<bool, Fault> {
        self.give_back_statistics(io)?;
        let mut has_more = self.deflate(io)?;
        for queue in [INFLATE, REPORTS_OF_OLD, REPORTS] {
            if self.frees.is_releasing() {
                return Ok(false);
            }
            has_more |= self.free(queue, io)?;
        }
        Ok(has_more || self.releasing.is_some() && !self.frees.is_releasing())
    }

    /// Takes the chains of a queue whose pages are free; the first whose memory has to be released first stays.
    fn free(&mut self, queue: u16, io: &mut Io<'_>) -> Result<bool, Fault> {
        let mut is_released = self.releasing.take_if(|releasing| *releasing == queue).is_some();
        for _ in 0..CHAINS {
            if !io.take(queue, &mut self.chain)? {
                io.publish(queue)?;
                return io.enable_notifications(queue);
            }
            if !is_released && !self.hide(queue, io)? {
                io.put_back(queue);
                io.publish(queue)?;
                return Ok(true);
            }
            if !is_released && self.frees.is_releasing() {
                io.put_back(queue);
                self.releasing = Some(queue);
                io.publish(queue)?;
                return Ok(false);
            }
            is_released = false;
            io.complete(queue, self.chain.head(), 0)?;
        }
        io.publish(queue)?;
        Ok(true)
    }

    /// Hides the memory that a chain names. False: not now.
    fn hide(&mut self, queue: u16, io: &Io<'_>) -> Result<bool, Fault> {
        if queue != INFLATE {
            // Its segments are the memory itself (section 5.5.6.7).
            let frees = &mut self.frees;
            return Ok(self.chain.writable().iter().all(|free| frees.hide(free.address, free.bytes.into())));
        }
        let (mut is_possible, partial, frees) = (true, &mut self.partial, &mut self.frees);
        pages::each(&self.chain, io, |page| {
            if let Some(block) = partial.free(page) {
                is_possible &= frees.hide(block, demand::BLOCK_BYTES);
            }
        })?;
        Ok(is_possible)
    }

    fn deflate(&mut self, io: &mut Io<'_>) -> Result<bool, Fault> {
        for _ in 0..CHAINS {
            if !io.take(DEFLATE, &mut self.chain)? {
                io.publish(DEFLATE)?;
                return io.enable_notifications(DEFLATE);
            }
            let partial = &mut self.partial;
            pages::each(&self.chain, io, |page| partial.reuse(page))?;
            io.complete(DEFLATE, self.chain.head(), 0)?;
        }
        io.publish(DEFLATE)?;
        Ok(true)
    }

    /// Reads the statistics that the driver has made available, and gives their chain back for newer ones where those
    /// are wanted. Till then it stays available.
    fn give_back_statistics(&mut self, io: &mut Io<'_>) -> Result<(), Fault> {
        if !io.take(STATISTICS, &mut self.chain)? {
            return io.enable_notifications(STATISTICS).map(drop);
        }
        let mut bytes = [0; Statistics::MOST_BYTES];
        let read = self.chain.read(io.memory, 0, &mut bytes)?;
        self.statistics = Statistics::of(&bytes[..read]);
        if !core::mem::take(&mut self.wants_statistics) {
            io.put_back(STATISTICS);
            return Ok(());
        }
        io.complete(STATISTICS, self.chain.head(), 0)?;
        io.publish(STATISTICS)?;
        io.enable_notifications(STATISTICS).map(drop)
    }
}

impl<F: Frees> VirtioDevice for Balloon<F> {
    const KIND: DeviceKind = DeviceKind::VirtioBalloon;
    const ID: u16 = 5;
    /// Of no class.
    const CLASS: u32 = 0x00_ff00;

    fn features(&self) -> u64 {
        FEATURES
    }

    fn queue_sizes(&self) -> &[u16] {
        QUEUE_SIZES
    }

    fn config_bytes(&self) -> u32 {
        BYTES
    }

    fn read_config(&self, at: u32, into: &mut [u8]) {
        let config = (u64::from(self.actual) << 32 | u64::from(self.wanted)).to_le_bytes();
        let there = config.get(at as usize..).unwrap_or_default();
        into.iter_mut().zip(there).for_each(|(into, byte)| *into = *byte);
    }

    fn write_config(&mut self, at: u32, from: &[u8], _: &mut Io<'_>) -> Result<(), Fault> {
        if let (ACTUAL, Ok(actual)) = (at, from.try_into()) {
            self.actual = u32::from_le_bytes(actual);
        }
        Ok(())
    }

    fn notify(&mut self, _: u16, io: &mut Io<'_>) -> Result<(), Fault> {
        io.send_soon();
        Ok(())
    }

    fn reset_queue(&mut self, queue: u16) {
        self.releasing.take_if(|releasing| *releasing == queue);
    }

    fn reset(&mut self) {
        (self.actual, self.releasing, self.wants_statistics) = (0, None, false);
        self.partial.clear();
        self.statistics = Statistics::default();
    }

    fn state_bytes(&self) -> usize {
        size_of::<state::Balloon>()
    }

    fn save(&self, into: &mut [u8]) -> Result<usize, Full> {
        let spares = self.frees.spares_used().map(|used| used.unwrap_or(NO_BLOCK).into());
        piece::save(&state::Balloon { wanted: self.wanted.into(), actual: self.actual.into(), spares }, into)
    }

    fn restore(&mut self, _: u32, from: &[u8]) -> Result<(), StateError> {
        let cut = StateError { field: "virtio.balloon", reason: "its state is cut off" };
        let saved = state::Balloon::read_from_bytes(from).map_err(|_| cut)?;
        self.reset();
        (self.wanted, self.actual) = (saved.wanted.get(), saved.actual.get());
        self.frees.use_spares(saved.spares.map(|block| Some(block.get()).filter(|block| *block != NO_BLOCK)));
        Ok(())
    }
}
