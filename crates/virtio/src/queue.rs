// SPDX-License-Identifier: MIT OR Apache-2.0
//! A split virtqueue from the device's side (section 2.7).

pub(crate) mod notifications;

use core::sync::atomic::{Ordering, fence};

use crate::chain::Chain;
use crate::chain::walk::Table;
use crate::fault::Fault;
use crate::feature;
use crate::limits::QUEUE_SIZE_MOST;
use crate::memory::Memory;
use crate::rings::{self, Addresses, read_u16, write_u16};

/// The features that a driver has negotiated about queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// [`feature::INDIRECT_DESC`].
    pub has_indirect: bool,
    /// [`feature::EVENT_IDX`].
    pub has_event_index: bool,
}

impl Options {
    /// Those among a driver's features.
    pub const fn of(features: u64) -> Self {
        Self {
            has_indirect: features & feature::INDIRECT_DESC != 0,
            has_event_index: features & feature::EVENT_IDX != 0,
        }
    }
}

/// How far the device is in the rings. Both count modulo 2^16.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Chains that it has taken.
    pub taken: u16,
    /// Chains that it has completed and published.
    pub used: u16,
}

/// A virtqueue that a driver has enabled. Copying it saves it; [`Queue::resume`] goes on from what was saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    addresses: Addresses,
    size: u16,
    options: Options,
    progress: Progress,
    /// Chains that are completed; those since `progress.used` are not published.
    completed: u16,
}

impl Queue {
    /// A queue as a driver has set it up. Whether its rings are memory shows at each access.
    ///
    /// # Errors
    /// [`Fault::QueueSize`] or [`Fault::Misaligned`].
    pub fn new(addresses: Addresses, size: u16, options: Options) -> Result<Self, Fault> {
        Self::resume(addresses, size, options, Progress::default())
    }

    /// The same from where another device was in it.
    ///
    /// # Errors
    /// As [`new`](Self::new); [`Fault::IndexJumped`] if more chains are taken and not completed than there can be.
    pub fn resume(addresses: Addresses, size: u16, options: Options, progress: Progress) -> Result<Self, Fault> {
        if !size.is_power_of_two() || size > QUEUE_SIZE_MOST {
            return Err(Fault::QueueSize { size });
        }
        addresses.check()?;
        if progress.taken.wrapping_sub(progress.used) > size {
            return Err(Fault::IndexJumped { index: progress.taken });
        }
        Ok(Self { addresses, size, options, progress, completed: progress.used })
    }

    /// Where its parts are.
    pub fn addresses(&self) -> Addresses {
        self.addresses
    }

    /// Its descriptors.
    pub fn size(&self) -> u16 {
        self.size
    }

    /// How far the device is. A chain that is completed and not published does not count.
    pub fn progress(&self) -> Progress {
        self.progress
    }

    /// Takes the next available chain; false if there is none. The device completes it, now or later.
    ///
    /// # Errors
    /// A [`Fault`] of the driver's: then nothing more can be taken until it resets the device.
    pub fn take<M: Memory + ?Sized>(&mut self, memory: &M, chain: &mut Chain) -> Result<bool, Fault> {
        let index = self.available(memory)?;
        if index == self.progress.taken {
            return Ok(false);
        }
        // The entry was written before the index (2.7.13.3), and is read after it.
        fence(Ordering::Acquire);
        let head = read_u16(memory, self.addresses.available_entry(self.progress.taken, self.size))?;
        chain.follow(memory, head, self.table())?;
        self.progress.taken = self.progress.taken.wrapping_add(1);
        Ok(true)
    }

    /// Returns how many chains are available, and not taken.
    ///
    /// # Errors
    /// [`Fault::Outside`] if a ring is not memory; [`Fault::IndexJumped`].
    pub fn waiting<M: Memory + ?Sized>(&self, memory: &M) -> Result<u16, Fault> {
        Ok(self.available(memory)?.wrapping_sub(self.progress.taken))
    }

    /// Follows a chain again that was taken and is not completed. The driver may have changed it meanwhile: it is
    /// checked as if it were another one.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub fn follow<M: Memory + ?Sized>(&self, memory: &M, head: u16, chain: &mut Chain) -> Result<(), Fault> {
        chain.follow(memory, head, self.table())
    }

    /// Puts the chain that was taken last back: the next [`take`](Self::take) gets it again. No other chain may have
    /// been taken since, and this one not completed.
    pub fn put_back(&mut self) {
        if self.progress.taken != self.completed {
            self.progress.taken = self.progress.taken.wrapping_sub(1);
        }
    }

    /// Writes a chain into the used ring, with the bytes that the device has written to it. The driver sees it when it
    /// is [published](Self::publish). A head that was not taken, or is completed twice, does what the driver could do.
    ///
    /// # Errors
    /// [`Fault::Outside`]; [`Fault::IndexJumped`] if more chains are completed than were taken.
    pub fn complete<M: Memory + ?Sized>(&mut self, memory: &M, head: u16, written: u32) -> Result<(), Fault> {
        if self.completed == self.progress.taken {
            return Err(Fault::IndexJumped { index: self.completed });
        }
        let mut entry = [0; 8];
        entry[..2].copy_from_slice(&head.to_le_bytes());
        entry[4..].copy_from_slice(&written.to_le_bytes());
        memory.write(self.addresses.used_entry(self.completed, self.size), &entry)?;
        self.completed = self.completed.wrapping_add(1);
        Ok(())
    }

    /// Shows the driver the completed chains. Returns whether it wants an interrupt for that.
    ///
    /// # Errors
    /// [`Fault::Outside`] if a ring is not memory.
    pub fn publish<M: Memory + ?Sized>(&mut self, memory: &M) -> Result<bool, Fault> {
        let before = self.progress.used;
        if before == self.completed {
            return Ok(false);
        }
        // The driver reads the index, then the entries and the buffers (2.7.8.2): all are written before the index is.
        fence(Ordering::Release);
        write_u16(memory, self.addresses.used_index(), self.completed)?;
        self.progress.used = self.completed;
        self.wants_interrupt(memory, before)
    }

    /// The available index, if it is one that a driver may have written.
    fn available<M: Memory + ?Sized>(&self, memory: &M) -> Result<u16, Fault> {
        let index = read_u16(memory, self.addresses.available_index())?;
        let outstanding = index.wrapping_sub(self.progress.used);
        // A driver has no more chains with the device than there are descriptors, and takes none of them back.
        if outstanding > self.size || index.wrapping_sub(self.progress.taken) > outstanding {
            return Err(Fault::IndexJumped { index });
        }
        Ok(index)
    }

    fn table(&self) -> Table {
        let Self { addresses: rings::Addresses { descriptors, .. }, size, options, .. } = *self;
        Table { address: descriptors, entries: size, has_indirect: options.has_indirect }
    }
}
