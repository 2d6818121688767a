// SPDX-License-Identifier: MIT OR Apache-2.0
//! The root table, and the context tables of the buses below it.
//!
//! An entry has 16 bytes and is stored in two halves. The half with the present bit is cleared first and set last, so
//! that the unit never sees half of each. Clearing is followed by an invalidation, which the caller issues, before the
//! other half changes.

use paging::{Entry, Format, TableMemory};
use units::{PAGE_BYTES, PHYSICAL_LIMIT, PhysAddr};

use crate::domain::DomainId;
use crate::hardware::Memory;
use crate::intel::coherence::Stores;
use crate::intel::format::SecondStage;
use crate::problem::Problem;

const ENTRY_BYTES: u64 = 16;
const BUSES: u64 = 256;
const FUNCTIONS: u64 = 256;
const PRESENT: u64 = 1 << 0;
/// FPD: faults of the requester's are not recorded, also while the entry is absent (section 9.3).
const FAULTS_DISABLED: u64 = 1 << 1;
const ADDRESS: u64 = !0xfff;
/// Bits of a context entry that hardware ignores.
const IGNORED_HIGH: u64 = 0b1111 << 3;
/// Address widths of a context entry.
const THREE_LEVELS: u64 = 0b001;
const FOUR_LEVELS: u64 = 0b010;
/// A bit that hardware ignores, in an entry that maps nothing.
const KEPT: u64 = 1 << 52;
const LAST: usize = 511;
/// Bits 12 to 51 of an entry.
const PAGE_ADDRESS: u64 = 0x000f_ffff_ffff_f000;

/// A context entry (section 9.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Context {
    low: u64,
    high: u64,
}

impl Context {
    /// Untranslated requests go through the second-stage tables at `top`; translation requests are refused (type 00).
    pub(super) fn translated(top: PhysAddr, has_four_levels: bool, domain: DomainId) -> Self {
        let width = if has_four_levels { FOUR_LEVELS } else { THREE_LEVELS };
        Self { low: (top.0 & ADDRESS) | PRESENT, high: u64::from(domain.0) << 8 | width }
    }

    pub(super) fn is_present(self) -> bool {
        self.low & PRESENT != 0
    }

    /// Returns whether it is absent and its requester's faults are not recorded.
    pub(super) fn is_stopped(self) -> bool {
        self.low & (PRESENT | FAULTS_DISABLED) == FAULTS_DISABLED
    }

    pub(super) fn domain(self) -> DomainId {
        DomainId((self.high >> 8) as u16)
    }

    /// Returns the top table of those that translate.
    pub(super) fn top(self) -> PhysAddr {
        PhysAddr(self.low & ADDRESS)
    }

    /// Returns whether it is one that [`translated`](Self::translated) makes.
    pub(super) fn is_ours(self, has_four_levels: bool) -> bool {
        let made = Self::translated(self.top(), has_four_levels, self.domain());
        self.low == made.low && self.high & !IGNORED_HIGH == made.high && is_physical(self.low)
    }
}

/// The root table with the context tables.
#[derive(Debug)]
pub(super) struct Contexts {
    root: PhysAddr,
    stores: Stores,
}

impl Contexts {
    /// Creates tables with no entry present: every function is blocked.
    pub(super) fn new(memory: &mut impl Memory, stores: Stores) -> Result<Self, Problem> {
        let root = stores.allocate(memory, PAGE_BYTES).ok_or(Problem::OutOfMemory)?;
        Ok(Self { root, stores })
    }

    /// Tables that were built earlier; [`check`](Self::check) checks them.
    pub(super) fn adopt(root: PhysAddr, stores: Stores) -> Self {
        Self { root, stores }
    }

    pub(super) fn root(&self) -> PhysAddr {
        self.root
    }

    /// Returns the entry of a requester; an absent one where its bus has no table.
    pub(super) fn get(&self, memory: &impl Memory, requester: u16) -> Context {
        let entry = |table| entry_of(table, requester.into());
        let found = self.table(memory, requester >> 8).map(entry).map(|at| read(memory, at));
        found.unwrap_or(Context { low: 0, high: 0 })
    }

    /// Makes an absent entry present. The bus gets a table if it has none.
    pub(super) fn set(&self, memory: &mut impl Memory, requester: u16, context: Context) -> Result<(), Problem> {
        let at = self.place(memory, requester)?;
        self.stores.store(memory, PhysAddr(at.0 + 8), context.high);
        self.stores.store(memory, at, context.low);
        Ok(())
    }

    /// Has the unit record no faults of a requester with an absent entry. The bus gets a table if it has none.
    pub(super) fn stop(&self, memory: &mut impl Memory, requester: u16) -> Result<(), Problem> {
        let at = self.place(memory, requester)?;
        self.stores.store(memory, at, FAULTS_DISABLED);
        Ok(())
    }

    /// Makes an entry absent.
    pub(super) fn clear(&self, memory: &mut impl Memory, requester: u16) {
        if let Some(table) = self.table(memory, requester >> 8) {
            self.stores.store(memory, entry_of(table, requester.into()), 0);
        }
    }

    /// Checks every entry.
    pub(super) fn check(
        &self,
        memory: &impl Memory,
        mut is_ours: impl FnMut(Context) -> bool,
    ) -> Result<(), &'static str> {
        for bus in 0..BUSES {
            let entry = read(memory, entry_of(self.root, bus));
            if !entry.is_present() {
                continue;
            }
            if entry.high != 0 || entry.low & !ADDRESS != PRESENT || !is_physical(entry.low) {
                return Err("an entry of the root table has reserved bits");
            }
            let mut contexts = (0..FUNCTIONS).map(|index| read(memory, entry_of(entry.top(), index)));
            if contexts.any(|context| context.is_present() && !is_ours(context)) {
                return Err("a context entry is none that this image makes");
            }
        }
        Ok(())
    }

    /// Frees all tables, which the unit no longer uses.
    pub(super) fn free(self, memory: &mut impl Memory) {
        for bus in 0..BUSES as u16 {
            if let Some(table) = self.table(memory, bus) {
                memory.free_piece(table, PAGE_BYTES);
            }
        }
        memory.free_piece(self.root, PAGE_BYTES);
    }

    /// Returns the address of a requester's entry.
    fn place(&self, memory: &mut impl Memory, requester: u16) -> Result<PhysAddr, Problem> {
        let table = match self.table(memory, requester >> 8) {
            Some(table) => table,
            None => self.add_table(memory, requester >> 8)?,
        };
        Ok(entry_of(table, requester.into()))
    }

    fn table(&self, memory: &impl Memory, bus: u16) -> Option<PhysAddr> {
        let entry = read(memory, entry_of(self.root, bus.into()));
        entry.is_present().then(|| entry.top())
    }

    fn add_table(&self, memory: &mut impl Memory, bus: u16) -> Result<PhysAddr, Problem> {
        let table = self.stores.allocate(memory, PAGE_BYTES).ok_or(Problem::OutOfMemory)?;
        self.stores.store(memory, entry_of(self.root, bus.into()), table.0 | PRESENT);
        Ok(table)
    }
}

/// Returns the top of three levels: the table of the four-level `root`'s first entry.
///
/// `paging` hands an empty table back, and this one must stay while a context entry points to it. Its last entry
/// names the root (such a unit's domains leave its GiB out), so that the table is never empty, and an image that adopts
/// the domain finds the root. Hardware ignores the entry: it is absent (section 9.8).
pub(super) fn third_level(memory: &mut impl TableMemory, root: PhysAddr) -> Result<PhysAddr, Problem> {
    let table = match SecondStage::decode(memory.read(root, 0), 4) {
        Entry::Table(table) => table,
        _ => {
            let table = memory.allocate().ok_or(Problem::OutOfMemory)?;
            memory.write(root, 0, SecondStage::table(table, 4));
            table
        }
    };
    let kept = KEPT | root.0;
    if memory.read(table, LAST) != kept {
        memory.write(table, LAST, kept);
    }
    Ok(table)
}

/// Returns the root of the domain with three levels from `top`, as [`third_level`] has noted it.
pub(super) fn root_of(memory: &impl TableMemory, top: PhysAddr) -> PhysAddr {
    PhysAddr(memory.read(top, LAST) & PAGE_ADDRESS)
}

fn entry_of(table: PhysAddr, index: u64) -> PhysAddr {
    PhysAddr(table.0 + index % 256 * ENTRY_BYTES)
}

fn read(memory: &impl Memory, at: PhysAddr) -> Context {
    Context { low: memory.read_word(at), high: memory.read_word(PhysAddr(at.0 + 8)) }
}

fn is_physical(low: u64) -> bool {
    low & ADDRESS != 0 && low < PHYSICAL_LIMIT
}
