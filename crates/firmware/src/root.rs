// SPDX-License-Identifier: MIT OR Apache-2.0
//! From the root pointer to the list of tables (ACPI 6.5, sections 5.2.5 to 5.2.8).

use crate::table::{self, HEADER_BYTES, Signature, Table};
use crate::{Error, Fault, MAX_TABLES, PhysicalMemory, Problem, Tables};

/// Signature of a root pointer, always on a 16-byte boundary.
const MAGIC: [u8; 8] = *b"RSD PTR ";
/// Bytes that the first checksum covers, and all of an ACPI 1.0 root pointer.
const FIRST_BYTES: u32 = 20;
/// Bytes of the root pointer from revision 2 on.
const FULL_BYTES: u32 = 36;
/// Bytes of the largest root pointer believed; later revisions may grow beyond [`FULL_BYTES`].
const MAX_POINTER_BYTES: u32 = 256;
/// Address at which the BIOS keeps the segment of its extended data area.
const EBDA_SEGMENT: u64 = 0x40e;
/// Bytes of the extended data area that are searched.
const EBDA_BYTES: u64 = 1024;
/// The BIOS read-only area.
const BIOS_AREA: core::ops::Range<u64> = 0xe_0000..0x10_0000;

/// The addresses a root pointer gives; 0 is none.
#[derive(Clone, Copy, Debug)]
struct RootPointer {
    rsdt: u64,
    xsdt: u64,
}

/// The table of tables.
pub struct RootTable<'m> {
    table: Table<'m>,
    signature: Signature,
    entry_bytes: u32,
}

/// Finds the root table: by the root pointer at `rsdp` if that is one, else by the first valid one in the first KiB of
/// the extended BIOS data area and then in the BIOS area (section 5.2.5.1).
pub fn find<'m>(
    memory: &'m dyn PhysicalMemory,
    rsdp: Option<u64>,
    tables: &mut Tables,
) -> Result<RootTable<'m>, Error> {
    let reported = rsdp.and_then(|address| valid_pointer(memory, address, tables));
    let pointer = reported.or_else(|| search(memory, tables)).ok_or(Error::NoRootPointer)?;
    let xsdt = RootTable::open(memory, pointer.xsdt, Signature::XSDT, 8);
    if let (Err(Problem { table, fault }), true) = (&xsdt, pointer.xsdt != 0) {
        tables.warn(*table, *fault);
    }
    let root =
        xsdt.or_else(|_| RootTable::open(memory, pointer.rsdt, Signature::RSDT, 4)).map_err(Error::NoRootTable)?;
    tables.check_revision(root.signature, &root.table);
    Ok(root)
}

/// The root pointer at `address`, or a warning.
fn valid_pointer(memory: &dyn PhysicalMemory, address: u64, tables: &mut Tables) -> Option<RootPointer> {
    read_pointer(memory, address).map_err(|fault| tables.warn(Signature::RSDP, fault)).ok()
}

fn search(memory: &dyn PhysicalMemory, tables: &mut Tables) -> Option<RootPointer> {
    let extended = extended_data_area(memory).unwrap_or(0..0);
    let candidates = extended.step_by(16).chain(BIOS_AREA.step_by(16));
    candidates.filter(|&at| has_magic(memory, at)).find_map(|at| valid_pointer(memory, at, tables))
}

/// The part of the extended BIOS data area that may hold the root pointer, if there is such an area below 640 KiB.
fn extended_data_area(memory: &dyn PhysicalMemory) -> Option<core::ops::Range<u64>> {
    let mut segment = [0; 2];
    memory.read(EBDA_SEGMENT, &mut segment).ok()?;
    let start = u64::from(u16::from_le_bytes(segment)) << 4;
    (0x500..0xa_0000).contains(&start).then_some(start..start + EBDA_BYTES)
}

fn has_magic(memory: &dyn PhysicalMemory, address: u64) -> bool {
    let mut bytes = [0; 8];
    memory.read(address, &mut bytes).is_ok() && bytes == MAGIC
}

/// Section 5.2.5.3. The second checksum is over all of a pointer that has an XSDT.
fn read_pointer(memory: &dyn PhysicalMemory, address: u64) -> Result<RootPointer, Fault> {
    if !has_magic(memory, address) {
        return Err(Fault::WrongSignature { address });
    }
    check_sum(memory, address, FIRST_BYTES)?;
    let mut first = [0; FIRST_BYTES as usize];
    memory.read(address, &mut first).map_err(|_| Fault::Unreadable { address })?;
    let rsdt = u64::from(u32::from_le_bytes([first[16], first[17], first[18], first[19]]));
    if first[15] < 2 {
        return Ok(RootPointer { rsdt, xsdt: 0 });
    }
    let rest_at = address.checked_add(u64::from(FIRST_BYTES)).ok_or(Fault::Unreadable { address })?;
    let mut rest = [0; 12];
    memory.read(rest_at, &mut rest).map_err(|_| Fault::Unreadable { address: rest_at })?;
    let [a, b, c, d, xsdt @ ..] = rest;
    match u32::from_le_bytes([a, b, c, d]) {
        bytes @ ..FULL_BYTES => return Err(Fault::TooShort { bytes, needed: FULL_BYTES }),
        bytes if bytes > MAX_POINTER_BYTES => return Err(Fault::TooLong { bytes, at_most: MAX_POINTER_BYTES }),
        bytes => check_sum(memory, address, bytes)?,
    }
    Ok(RootPointer { rsdt, xsdt: u64::from_le_bytes(xsdt) })
}

fn check_sum(memory: &dyn PhysicalMemory, address: u64, bytes: u32) -> Result<(), Fault> {
    match table::sum(memory, address, bytes)? {
        0 => Ok(()),
        sum => Err(Fault::BadChecksum { sum }),
    }
}

impl<'m> RootTable<'m> {
    fn open(
        memory: &'m dyn PhysicalMemory,
        address: u64,
        signature: Signature,
        entry_bytes: u32,
    ) -> Result<Self, Problem> {
        let problem = |fault| Problem { table: signature, fault };
        if address == 0 {
            return Err(problem(Fault::Missing));
        }
        let table = Table::open(memory, address, signature, HEADER_BYTES).map_err(problem)?;
        Ok(Self { table, signature, entry_bytes })
    }

    /// Calls `each` with the name and the address of every table. Nothing of a table but its name has been read.
    pub fn for_each(&self, tables: &mut Tables, mut each: impl FnMut(&mut Tables, Signature, u64)) {
        let count = (self.table.bytes() - HEADER_BYTES) / self.entry_bytes;
        if count as usize > MAX_TABLES {
            tables.warn(self.signature, Fault::TooManyTables { count });
        }
        for index in 0..count.min(MAX_TABLES as u32) {
            let address = self.entry(HEADER_BYTES + index * self.entry_bytes).unwrap_or(0);
            if address == 0 {
                continue;
            }
            match table::signature_at(self.table.memory(), address) {
                Ok(signature) => each(tables, signature, address),
                Err(fault) => tables.warn(self.signature, fault),
            }
        }
    }

    fn entry(&self, offset: u32) -> Option<u64> {
        if self.entry_bytes == 8 { self.table.u64(offset) } else { self.table.u32(offset).map(u64::from) }
    }
}

#[cfg(test)]
#[path = "root_tests.rs"]
mod tests;
