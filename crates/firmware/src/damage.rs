// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory as it is, but with a bad table of CPUs: for self-tests of a host on machines with good tables.
//!
//! The table is recognised when its name is read, which any reader reads first. A changed table has a good checksum
//! again, so that it is believed.

use core::cell::RefCell;

use arrayvec::ArrayVec;

use crate::table::Signature;
use crate::{PhysicalMemory, Unreadable, madt};

/// Damage to the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// It is not there.
    Missing,
    /// It ends within its second entry.
    Truncated,
    /// The second CPU has the identifier of the first.
    Duplicate,
    /// The second CPU has an identifier that no CPU has, the third one that means all.
    Absurd,
}

/// An identifier that no CPU of a machine with fewer than 254 has.
const UNUSED_ID: u8 = 0xfe;
const BROADCAST_ID: u8 = 0xff;
/// Entries that are checked for CPUs.
const MOST_ENTRIES: u32 = 512;

/// Memory with a damaged table.
pub struct Damaged<'m> {
    memory: &'m dyn PhysicalMemory,
    damage: Damage,
    found: RefCell<Option<Patches>>,
}

/// Bytes that read differently.
#[derive(Default)]
struct Patches {
    table: u64,
    bytes: ArrayVec<(u32, u8), 8>,
}

impl<'m> Damaged<'m> {
    /// `memory`, in which the table of CPUs is damaged in this way.
    pub fn new(memory: &'m dyn PhysicalMemory, damage: Damage) -> Self {
        Self { memory, damage, found: RefCell::new(None) }
    }

    fn u32(&self, address: u64) -> u32 {
        let mut bytes = [0; 4];
        self.memory.read(address, &mut bytes).map_or(0, |()| u32::from_le_bytes(bytes))
    }

    fn patches(&self, table: u64) -> Patches {
        let mut patches = Patches { table, ..Patches::default() };
        let length = self.u32(table + 4);
        let ids = self.identifiers(table, length);
        let mut put = |offset: u32, byte: u8| patches.bytes.try_push((offset, byte)).is_ok();
        match (self.damage, ids.as_slice()) {
            (Damage::Missing, _) => _ = put(0, b'x'),
            (Damage::Truncated, _) => {
                let cut = madt::MINIMUM_BYTES + 8 + 4;
                (4..8).zip(cut.to_le_bytes()).for_each(|(offset, byte)| _ = put(offset, byte));
                self.make_good(&mut patches, cut);
            }
            (Damage::Duplicate, &[(_, first), (second, _), ..]) => {
                put(second, first);
                self.make_good(&mut patches, length);
            }
            (Damage::Absurd, &[_, (second, _), ref third @ ..]) => {
                put(second, UNUSED_ID);
                third.first().into_iter().for_each(|&(third, _)| _ = put(third, BROADCAST_ID));
                self.make_good(&mut patches, length);
            }
            (Damage::Duplicate | Damage::Absurd, _) => {}
        }
        patches
    }

    /// Returns the addresses of the first three CPUs' identifiers, and the identifiers.
    fn identifiers(&self, table: u64, length: u32) -> ArrayVec<(u32, u8), 3> {
        let mut found = ArrayVec::new();
        let mut offset = madt::MINIMUM_BYTES;
        for _ in 0..MOST_ENTRIES {
            let [kind, bytes, _, apic_id] = self.u32(table + u64::from(offset)).to_le_bytes();
            if found.is_full() || offset + 4 > length || bytes < 2 {
                break;
            }
            if kind == 0 {
                found.push((offset + 3, apic_id));
            }
            offset += u32::from(bytes);
        }
        found
    }

    /// The checksum of the patched table's first `length` bytes.
    fn make_good(&self, patches: &mut Patches, length: u32) {
        const CHECKSUM: u32 = 9;
        let mut sum = 0u8;
        for offset in 0..length.min(crate::MAX_TABLE_BYTES) {
            let mut byte = [0];
            let is_read = self.memory.read(patches.table + u64::from(offset), &mut byte).is_ok();
            let patched = patches.bytes.iter().find(|(at, _)| *at == offset).map_or(byte[0], |(_, patched)| *patched);
            sum = if is_read && offset != CHECKSUM { sum.wrapping_add(patched) } else { sum };
        }
        _ = patches.bytes.try_push((CHECKSUM, sum.wrapping_neg()));
    }
}

impl PhysicalMemory for Damaged<'_> {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        self.memory.read(address, into)?;
        let mut found = self.found.borrow_mut();
        if found.is_none() && *into == Signature::MADT.0 {
            *found = Some(self.patches(address));
        }
        for &(offset, byte) in found.iter().flat_map(|patches| &patches.bytes) {
            let at = found.as_ref().map_or(0, |patches| patches.table) + u64::from(offset);
            let place = at.checked_sub(address).and_then(|place| into.get_mut(usize::try_from(place).ok()?));
            place.into_iter().for_each(|place| *place = byte);
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "damage_tests.rs"]
mod tests;
