// SPDX-License-Identifier: MIT OR Apache-2.0
//! The mailbox at which a CPU waits for the next image, in a page that both images keep.
//!
//! ```text
//! Empty ──park──▶ Parked ──release──▶ Releasing ──▶ Released ──take──▶ Taken ──park──▶ …
//!                    └──────────┴── condemn ───────────┴──▶ Condemned
//! ```
//!
//! The old image parks: each CPU writes its APIC identifier and waits, by MONITOR and MWAIT on the slot's line, by HLT,
//! or by PAUSE, reading nothing but its own line. The new image releases it by one write, with the page tables and the
//! address to go on with. Several CPUs may release the same one (its parent in the tree, later the boot CPU): one of
//! them writes the entry, the others find it written. A condemned slot is never taken, and a taken one is never
//! condemned.
//!
//! Two images, perhaps of different versions, read the same bytes: layout and words are fixed, and the version counts
//! up when they change.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 8 | magic, [`MAGIC`] |
//! | 8 | 4 | version, [`VERSION`] |
//! | 12 | 4 | APIC identifier |
//! | 16 | 4 | state: 0 empty, 1 parked, 2 releasing, 3 released, 4 taken, 5 condemned |
//! | 20 | 4 | zero |
//! | 24 | 8 | where to go on: a virtual address under the new page tables and under the page's own |
//! | 32 | 8 | page-table root, for CR3 |
//! | 40 | 8 | argument, for RDI |
//! | 48 | 16 | zero |

use core::fmt;

use crate::sync::{AtomicU32, AtomicU64, Ordering, const_new};

/// The slot's first eight bytes: `BatnPark`, read as a little-endian number.
pub const MAGIC: u64 = u64::from_le_bytes(*b"BatnPark");
/// Counts up when the layout or the meaning of a word changes.
pub const VERSION: u32 = 1;
/// A slot's size and alignment: one line, so that a CPU watches nothing but its own.
pub const SLOT_BYTES: usize = 64;

/// The state words, for code that cannot call this crate: the assembly that waits in the surviving page.
pub mod word {
    /// No CPU waits here.
    pub const EMPTY: u32 = 0;
    /// A CPU waits here.
    pub const PARKED: u32 = 1;
    /// A CPU is writing the entry.
    pub const RELEASING: u32 = 2;
    /// The entry is there: compare-and-exchange to [`TAKEN`], then go.
    pub const RELEASED: u32 = 3;
    /// The CPU has taken the entry and left.
    pub const TAKEN: u32 = 4;
    /// The CPU was given up: halt for ever.
    pub const CONDEMNED: u32 = 5;
}

/// Entry point of a released CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Address of its first instruction.
    pub target: u64,
    /// Physical address of its page tables: a multiple of 4,096.
    pub root: u64,
    /// The order that it gets.
    pub argument: u64,
}

/// The reason why a slot cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotError {
    /// The bytes are not a slot.
    BadMagic {
        /// Magic number found.
        found: u64,
    },
    /// Another version of Baton parked the CPU.
    BadVersion {
        /// Its slots' version.
        found: u32,
    },
    /// Another CPU waits here.
    WrongCpu {
        /// Its APIC identifier.
        found: u32,
    },
    /// No CPU waits here.
    NotParked {
        /// The state word.
        state: u32,
    },
    /// The given address or page tables cannot be used as an entry.
    BadEntry,
}

impl fmt::Display for SlotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadMagic { found } => write!(f, "its mailbox begins with {found:#x}: not one of Baton's"),
            Self::BadVersion { found } => {
                write!(f, "its mailbox has version {found}, this image reads {VERSION}: reset the host once")
            }
            Self::WrongCpu { found } => write!(f, "its mailbox belongs to the CPU with APIC id {found}"),
            Self::NotParked { state } => write!(f, "it does not wait at its mailbox (state {state})"),
            Self::BadEntry => f.write_str("the entry has no address, or page tables off a page boundary"),
        }
    }
}

impl core::error::Error for SlotError {}

/// An order that a parked CPU finds in its mailbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParkOrder {
    /// None: wait on.
    Stay,
    /// Continue at this entry.
    Go(Entry),
    /// It was given up: halt for ever.
    Halt,
}

/// One CPU's mailbox.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct ParkSlot {
    magic: AtomicU64,
    version: AtomicU32,
    apic_id: AtomicU32,
    state: AtomicU32,
    zero: u32,
    target: AtomicU64,
    root: AtomicU64,
    argument: AtomicU64,
    reserved: [u64; 2],
}

#[cfg(not(test))]
const _: () = {
    assert!(size_of::<ParkSlot>() == SLOT_BYTES && align_of::<ParkSlot>() == SLOT_BYTES);
    assert!(core::mem::offset_of!(ParkSlot, version) == 8 && core::mem::offset_of!(ParkSlot, apic_id) == 12);
    assert!(ParkSlot::STATE_OFFSET == 16 && ParkSlot::TARGET_OFFSET == 24);
    assert!(ParkSlot::ROOT_OFFSET == 32 && ParkSlot::ARGUMENT_OFFSET == 40);
};

impl ParkSlot {
    /// Offset of the state word.
    pub const STATE_OFFSET: usize = core::mem::offset_of!(Self, state);
    /// Offset of the address to go on at.
    pub const TARGET_OFFSET: usize = core::mem::offset_of!(Self, target);
    /// Offset of the page-table root.
    pub const ROOT_OFFSET: usize = core::mem::offset_of!(Self, root);
    /// Offset of the argument.
    pub const ARGUMENT_OFFSET: usize = core::mem::offset_of!(Self, argument);

    const_new! {
        /// A slot at which no CPU waits.
        {
            Self {
                magic: AtomicU64::new(MAGIC),
                version: AtomicU32::new(VERSION),
                apic_id: AtomicU32::new(0),
                state: AtomicU32::new(word::EMPTY),
                zero: 0,
                target: AtomicU64::new(0),
                root: AtomicU64::new(0),
                argument: AtomicU64::new(0),
                reserved: [0; 2],
            }
        }
    }

    /// Marks the calling CPU as waiting here. Makes a valid slot of any bytes: the page's owner is the old image.
    pub fn park(&self, apic_id: u32) {
        self.magic.store(MAGIC, Ordering::Relaxed);
        self.version.store(VERSION, Ordering::Relaxed);
        self.apic_id.store(apic_id, Ordering::Relaxed);
        self.state.store(word::PARKED, Ordering::Release);
    }

    /// Readies the slot for a CPU that will mark it parked itself: one that must first stand on pages that
    /// survive, and from there on runs code that cannot call this crate.
    pub fn expect(&self, apic_id: u32) {
        self.magic.store(MAGIC, Ordering::Relaxed);
        self.version.store(VERSION, Ordering::Relaxed);
        self.apic_id.store(apic_id, Ordering::Relaxed);
        self.state.store(word::EMPTY, Ordering::Release);
    }

    /// Returns whether a CPU waits here that has not been released.
    pub fn is_parked(&self) -> bool {
        self.state.load(Ordering::Acquire) == word::PARKED
    }

    /// Reads the mailbox; a parked CPU does so whenever its line changes.
    pub fn poll(&self) -> ParkOrder {
        match self.state.load(Ordering::Acquire) {
            word::RELEASED if self.step(word::RELEASED, word::TAKEN) => ParkOrder::Go(Entry {
                target: self.target.load(Ordering::Relaxed),
                root: self.root.load(Ordering::Relaxed),
                argument: self.argument.load(Ordering::Relaxed),
            }),
            word::CONDEMNED => ParkOrder::Halt,
            _ => ParkOrder::Stay,
        }
    }

    /// Checks that the CPU with this identifier waits here, or has just been released from here.
    ///
    /// # Errors
    /// [`SlotError`], which names the fault of the slot.
    pub fn adopt(&self, apic_id: u32) -> Result<(), SlotError> {
        let state = self.state.load(Ordering::Acquire);
        let magic = self.magic.load(Ordering::Relaxed);
        let version = self.version.load(Ordering::Relaxed);
        let found = self.apic_id.load(Ordering::Relaxed);
        match state {
            _ if magic != MAGIC => Err(SlotError::BadMagic { found: magic }),
            _ if version != VERSION => Err(SlotError::BadVersion { found: version }),
            _ if found != apic_id => Err(SlotError::WrongCpu { found }),
            word::PARKED..=word::TAKEN => Ok(()),
            state => Err(SlotError::NotParked { state }),
        }
    }

    /// Releases the CPU with this identifier. Returns `Ok(false)` if another CPU has released it or is doing so.
    ///
    /// # Errors
    /// [`SlotError`]; nothing has changed then.
    pub fn release(&self, apic_id: u32, entry: Entry) -> Result<bool, SlotError> {
        self.adopt(apic_id)?;
        if entry.target == 0 || entry.root == 0 || !entry.root.is_multiple_of(4096) {
            return Err(SlotError::BadEntry);
        }
        if !self.step(word::PARKED, word::RELEASING) {
            return Ok(false);
        }
        self.target.store(entry.target, Ordering::Relaxed);
        self.root.store(entry.root, Ordering::Relaxed);
        self.argument.store(entry.argument, Ordering::Relaxed);
        // Not a plain store: it may have been condemned meanwhile.
        Ok(self.step(word::RELEASING, word::RELEASED))
    }

    /// Keeps the CPU here for ever. Returns `false` if it has left already.
    pub fn condemn(&self) -> bool {
        // Each failure means that the state moved on, which it does twice at most before it ends.
        [word::PARKED, word::RELEASING, word::RELEASED].into_iter().any(|state| self.step(state, word::CONDEMNED))
    }

    fn step(&self, from: u32, to: u32) -> bool {
        self.state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

impl Default for ParkSlot {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
#[path = "park_tests.rs"]
mod tests;
