// SPDX-License-Identifier: MIT OR Apache-2.0
//! Architectural last branch records: the CPU keeps where the last branches came from and went to, the youngest
//! as the first (Intel SDM vol. 3, chapter 19).
//!
//! They record while their user runs and at no other time: [`Lbr::leave`] stops them before the host branches. Their
//! contents stay there from exit to exit. They are saved and taken out when the turn is another user's. The records of
//! a user that does not record are not loaded.

use crate::Msrs;
use crate::refused::Refused;

/// Registers.
#[allow(missing_docs)]
pub mod number {
    pub const CONTROL: u32 = 0x14ce;
    pub const DEPTH: u32 = 0x14cf;
    pub const INFO: u32 = 0x1200;
    pub const FROM: u32 = 0x1500;
    pub const TO: u32 = 0x1600;
}
use number::*;

/// The most entries there can be.
pub const ENTRIES: usize = 32;

const ENABLE: u64 = 1;
/// Bits that an entry's information can have: cycles, and from the branch's kind on all.
const INFO_WRITABLE: u64 = 0xff00_0000_0000_ffff;

/// Content of CPUID leaf 0x1C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Description {
    /// A bit for each number of entries that can be chosen: 8, 16, … 64.
    pub depths: u8,
    /// Bits of the control register that can be set.
    pub control: u64,
}

impl Description {
    /// From leaf 7's EDX and leaf 0x1C's EAX and EBX; `None` where there are none, or only more than can be saved here.
    pub const fn from_cpuid(leaf_7_edx: u32, eax: u32, ebx: u32) -> Option<Self> {
        const ARCHITECTURAL: u32 = 1 << 19;
        const KEPT: u8 = (1 << (ENTRIES / 8)) - 1;
        const fn bits(has: u32, bits: u64) -> u64 {
            if has != 0 { bits } else { 0 }
        }
        let depths = eax as u8 & KEPT;
        let control = ENABLE | bits(ebx & 1, 0b110) | bits(ebx & 0b10, 0x7f << 16) | bits(ebx & 0b100, 1 << 3);
        if leaf_7_edx & ARCHITECTURAL != 0 && depths != 0 { Some(Self { depths, control }) } else { None }
    }

    const fn allows(&self, depth: u64) -> bool {
        depth != 0 && depth.is_multiple_of(8) && depth <= ENTRIES as u64 && self.depths & 1 << (depth / 8 - 1) != 0
    }

    /// The most entries that can be chosen: what there is after power-on.
    const fn deepest(&self) -> u64 {
        8 * (8 - self.depths.leading_zeros() as u64)
    }
}

/// A branch, as its three registers have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
struct Entry {
    from: u64,
    to: u64,
    info: u64,
}

/// One user's records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lbr {
    description: Description,
    control: u64,
    depth: u64,
    /// Those that are not in the CPU.
    entries: [Entry; ENTRIES],
    is_loaded: bool,
}

impl Lbr {
    /// As after power-on: off, and empty.
    pub const fn new(description: Description) -> Self {
        let empty = Entry { from: 0, to: 0, info: 0 };
        Self { description, control: 0, depth: description.deepest(), entries: [empty; ENTRIES], is_loaded: false }
    }

    /// RDMSR of one of its registers. Entries beyond the depth are empty.
    pub fn read(&self, msrs: &mut impl Msrs, number: u32) -> Option<u64> {
        match number {
            CONTROL => return Some(self.control),
            DEPTH => return Some(self.depth),
            _ => {}
        }
        let (bank, at) = place(number)?;
        Some(match self.entries.get(at) {
            _ if at as u64 >= self.depth => 0,
            _ if self.is_loaded => msrs.read(number),
            Some(entry) if bank == FROM => entry.from,
            Some(entry) if bank == TO => entry.to,
            entry => entry?.info,
        })
    }

    /// WRMSR of one of its registers, by a user that does not run meanwhile. Entries beyond the depth stay empty.
    ///
    /// # Errors
    /// [`Refused`] if there is none of this number, a reserved bit is set, or there cannot be so many entries.
    pub fn write(&mut self, msrs: &mut impl Msrs, number: u32, value: u64) -> Result<(), Refused> {
        match number {
            CONTROL if value & !self.description.control == 0 => self.control = value,
            DEPTH if self.description.allows(value) => self.set_depth(msrs, value),
            CONTROL | DEPTH => return Err(Refused),
            _ => {
                let (bank, at) = place(number).ok_or(Refused)?;
                if bank == INFO && value & !INFO_WRITABLE != 0 {
                    return Err(Refused);
                }
                if (at as u64) < self.depth {
                    self.set_entry(msrs, number, value);
                }
            }
        }
        Ok(())
    }

    /// The user runs from now on.
    pub fn enter(&mut self, msrs: &mut impl Msrs) {
        if self.control & ENABLE == 0 {
            return;
        }
        if !self.is_loaded {
            self.load(msrs);
        }
        msrs.write(CONTROL, self.control);
    }

    /// It does not run any more.
    pub fn leave(&mut self, msrs: &mut impl Msrs) {
        if self.is_loaded {
            msrs.write(CONTROL, 0);
        }
    }

    /// Another's turn: nothing of it is left.
    pub fn switch_out(&mut self, msrs: &mut impl Msrs) {
        if !self.is_loaded {
            return;
        }
        for (at, entry) in (0..self.depth as u32).zip(&mut self.entries) {
            *entry = Entry { from: msrs.read(FROM + at), to: msrs.read(TO + at), info: msrs.read(INFO + at) };
        }
        // A write of the depth empties all.
        msrs.write(DEPTH, self.description.deepest());
        self.is_loaded = false;
    }

    fn load(&mut self, msrs: &mut impl Msrs) {
        msrs.write(DEPTH, self.depth);
        for (at, entry) in (0..self.depth as u32).zip(&self.entries) {
            msrs.write(FROM + at, entry.from);
            msrs.write(TO + at, entry.to);
            msrs.write(INFO + at, entry.info);
        }
        self.is_loaded = true;
    }

    /// All entries are empty afterwards, also where it is the depth that there was.
    fn set_depth(&mut self, msrs: &mut impl Msrs, depth: u64) {
        self.depth = depth;
        self.entries = [Entry::default(); ENTRIES];
        if self.is_loaded {
            msrs.write(DEPTH, depth);
        }
    }

    fn set_entry(&mut self, msrs: &mut impl Msrs, number: u32, value: u64) {
        let Some((bank, at)) = place(number).filter(|_| !self.is_loaded) else { return msrs.write(number, value) };
        match (&mut self.entries[at], bank) {
            (entry, FROM) => entry.from = value,
            (entry, TO) => entry.to = value,
            (entry, _) => entry.info = value,
        }
    }
}

/// Returns which of an entry's registers this is, and whose.
fn place(number: u32) -> Option<(u32, usize)> {
    let bank = number & !0xff;
    let at = (number & 0xff) as usize;
    (matches!(bank, FROM | TO | INFO) && at < ENTRIES).then_some((bank, at))
}
