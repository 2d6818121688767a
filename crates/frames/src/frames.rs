// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ledger: the memory of the machine, and its owners.

use units::{MIB, PAGE_BYTES, PhysAddr, PhysRange};

use crate::error::AddError;
use crate::extents::{EXTENT_BYTES, Extents};
use crate::nodes::{Node, NodeMap};
use crate::records::Records;

/// Memory below this is used last: CPUs start there.
pub(crate) const LOW_MEMORY_END: PhysAddr = PhysAddr(MIB);

/// Greatest number of extents of free memory, and of memory that guests own.
pub const MAXIMUM_EXTENTS: usize = 512;
/// Greatest number of extents of each of the smaller sets.
pub(crate) const FEW_EXTENTS: usize = 128;
const LARGE_SETS: usize = 3;
const SMALL_SETS: usize = 6;

/// The slots that a ledger is kept in, for any size of memory.
pub const LEDGER_SLOTS: usize = LARGE_SETS * MAXIMUM_EXTENTS + SMALL_SETS * FEW_EXTENTS;
/// Their bytes.
pub const LEDGER_BYTES: u64 = LEDGER_SLOTS as u64 * EXTENT_BYTES;

/// The machine's memory: what there is, and which of it is free. `const` constructible, so that it can be a static.
#[derive(Debug, Default)]
pub struct Frames<'m> {
    /// All memory ever added: what may be freed.
    pub(crate) memory: Extents<'m>,
    /// Free memory.
    pub(crate) free: Extents<'m>,
    /// Memory that is set aside for guests.
    pub(crate) huge: Extents<'m>,
    /// The part of `huge` that has no owner.
    pub(crate) huge_free: Extents<'m>,
    /// Free memory that is known to hold zeros only.
    pub(crate) clean: Extents<'m>,
    /// Free memory that guests have left.
    pub(crate) tainted: Extents<'m>,
    /// Memory that guests own.
    pub(crate) guests: Extents<'m>,
    /// Memory that must not be used.
    pub(crate) retired: Extents<'m>,
    /// Memory that is being scrubbed: it has no owner, but cannot be allocated at this moment.
    pub(crate) scrubbing: Extents<'m>,
    pub(crate) nodes: NodeMap,
    pub(crate) records: Option<&'m Records<'m>>,
    /// Bytes of free memory that guests leave to the host.
    pub(crate) host_bytes: u64,
    /// Bytes of the slots, all of which were written to make them.
    slot_bytes: u64,
}

impl<'m> Frames<'m> {
    /// Creates a ledger without memory, and without slots for extents.
    pub const fn new() -> Self {
        Self {
            memory: Extents::new(),
            free: Extents::new(),
            huge: Extents::new(),
            huge_free: Extents::new(),
            clean: Extents::new(),
            tainted: Extents::new(),
            guests: Extents::new(),
            retired: Extents::new(),
            scrubbing: Extents::new(),
            nodes: NodeMap::new(),
            records: None,
            host_bytes: 0,
            slot_bytes: 0,
        }
    }

    /// Creates a ledger without memory, for [`LEDGER_SLOTS`] extents; with fewer slots, for none.
    pub fn in_slots(mut slots: &'m mut [PhysRange]) -> Self {
        if slots.len() < LEDGER_SLOTS {
            return Self::new();
        }
        let mut part = |count| {
            let (part, rest) = core::mem::take(&mut slots).split_at_mut(count);
            slots = rest;
            Extents::in_slots(part)
        };
        Self {
            memory: part(MAXIMUM_EXTENTS),
            free: part(MAXIMUM_EXTENTS),
            huge: part(FEW_EXTENTS),
            huge_free: part(FEW_EXTENTS),
            clean: part(FEW_EXTENTS),
            tainted: part(FEW_EXTENTS),
            guests: part(MAXIMUM_EXTENTS),
            retired: part(FEW_EXTENTS),
            scrubbing: part(FEW_EXTENTS),
            slot_bytes: LEDGER_BYTES,
            ..Self::new()
        }
    }

    /// Sets the memory of each node. Before anything is allocated for guests.
    pub fn set_nodes(&mut self, nodes: NodeMap) {
        self.nodes = nodes;
    }

    /// Returns all memory, parted where its node changes.
    pub fn stretches(&self) -> impl Iterator<Item = (PhysRange, Option<Node>)> + '_ {
        self.memory.iter().flat_map(|memory| self.nodes.parts(memory))
    }

    /// Adds usable memory from the memory map: the whole frames inside `range`.
    ///
    /// # Errors
    /// Refused whole if some of it was added before or the extents are used up.
    pub fn add_free(&mut self, range: PhysRange) -> Result<(), AddError> {
        let range = range.aligned_inwards(PAGE_BYTES);
        if let Some(twice) = self.memory.overlap(range) {
            return Err(AddError::Overlap(twice));
        }
        self.memory.insert(range).map_err(AddError::TooManyExtents)?;
        if let Err(error) = self.free.insert(range) {
            // Cannot cut a hole: the range was not in `memory` before, so removing it restores what was there.
            let _ = self.memory.remove(range);
            return Err(AddError::TooManyExtents(error));
        }
        Ok(())
    }

    /// Returns how many bytes have no owner.
    pub fn free_bytes(&self) -> u64 {
        self.free.bytes() + self.huge_free.bytes() + self.scrubbing.bytes()
    }

    /// Leaves so much free memory below 4 GiB to the host whatever guests ask for, and half as much free memory
    /// whatever files are sent: without memory the host could not go on, and the next image lies below 4 GiB.
    pub fn leave_to_host(&mut self, bytes: u64) {
        self.host_bytes = bytes;
    }

    /// Returns how many bytes were added in all.
    pub fn total_bytes(&self) -> u64 {
        self.memory.bytes()
    }

    /// Returns the largest piece of free memory; `None` if there is none.
    pub fn largest_extent(&self) -> Option<PhysRange> {
        self.extents().max_by_key(|extent| extent.bytes())
    }

    /// Returns every piece of memory that is free for any owner, by rising address, then those set aside for guests.
    pub fn extents(&self) -> impl Iterator<Item = PhysRange> + '_ {
        self.free.iter().chain(self.huge_free.iter())
    }

    /// Returns the number of bytes of the ledger and of records that have been written so far, by any CPU.
    pub fn written_bytes(&self) -> u64 {
        let sets = [&self.memory, &self.free, &self.huge, &self.huge_free];
        let more = [&self.clean, &self.tainted, &self.guests, &self.retired, &self.scrubbing];
        let ledger: u64 = sets.into_iter().chain(more).map(Extents::written_bytes).sum();
        self.slot_bytes + ledger + self.records.map_or(0, Records::written_bytes)
    }
}
