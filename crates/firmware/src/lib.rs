// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine as its firmware describes it: ACPI tables, read as bytes.
//!
//! A hypervisor wants few facts from ACPI (which CPUs, where the interrupt controllers and timers are, how to
//! reset and power off) and wants them early, before it has a heap or a second stack. So the tables are read as data:
//!
//! - every byte comes through [`PhysicalMemory`]; no pointer is ever made from an address that firmware wrote;
//! - every length, count and loop has a bound ([`MAX_TABLES`], [`MAX_TABLE_BYTES`], the lists in [`Tables`]);
//! - every table's checksum is verified before a field is believed, a field past the table's end is absent, and a bit
//!   that the table's revision reserves means nothing;
//! - AML, the tables' byte code, is never interpreted: the one value needed from it is found by a [byte search](sleep).
//!
//! The `acpi` crate serves kernels that do run AML. It asks its user for 23 methods on AML's behalf, maps tables as raw
//! pointers, and takes their lengths as given; the handful of fixed layouts needed here is smaller than that seam, and
//! this way the whole of it is tested and fuzzed on a laptop.
//!
//! Bad firmware is common and seldom fatal: a table that is missing or corrupt costs only its own content, and leaves a
//! typed [`Problem`] in [`Tables::warnings`]. Only a machine without a usable root table is an [`Error`].
//!
//! | module | content | source |
//! |---|---|---|
//! | [`root`] | root pointer, RSDT and XSDT | ACPI 6.5, sections 5.2.5 to 5.2.8 |
//! | [`madt`] | CPUs, I/O APICs, interrupt overrides | 5.2.12 |
//! | [`fadt`] | timer, sleep and reset registers | 5.2.9 |
//! | [`sleep`] | the value that powers the machine off | 7.4.2, 20.2 |
//! | [`power`] | the register writes that power off and reset | 4.8.3 |
//! | [`hpet`] | the high precision event timer | IA-PC HPET 1.0a, section 3.2.4 |
//! | [`mcfg`] | PCI Express configuration space | PCI Firmware Specification 3.2, section 4.1.2 |
//! | [`srat`] | which memory and CPUs are on which NUMA node | ACPI 6.5, section 5.2.16 |
//! | [`iommu`] | where the tables of IOMMUs are | AMD 48882 rev 3.10, section 5.2; Intel VT-d rev 4.1, chapter 8 |
//! | [`table`], [`register`] | one table's checked bytes; a generic address | 5.2.6, 5.2.3.2 |
//! | [`tables`], [`problem`] | the facts found; the faults found | |
//! | [`damage`] | bad tables on good machines, for self-tests | |
#![no_std]

#[cfg(test)]
extern crate std;

pub mod damage;
pub mod fadt;
pub mod hpet;
pub mod iommu;
pub mod madt;
pub mod mcfg;
mod memory;
pub mod power;
pub mod problem;
pub mod register;
pub mod root;
mod signature;
pub mod sleep;
pub mod srat;
pub mod table;
pub mod tables;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use memory::{PhysicalMemory, Unreadable};
pub use problem::{Error, Fault, MAX_TABLES, Problem, Register};
pub use signature::Signature;
pub use table::MAX_TABLE_BYTES;
pub use tables::{Cpu, Ecam, IoApic, Location, MemoryAffinity, Override, PmTimer, ResetRegister, SmiCommand, Tables};

use table::Table;

/// Clears `tables` and fills it with the content of the firmware's tables.
///
/// `rsdp` is the root pointer's physical address where the boot protocol gives one (PVH does). Without it, or where it
/// is no valid root pointer, the areas of the PC are [searched](root::find).
///
/// # Errors
/// Without a root pointer or a root table nothing is known: `tables` then holds the defaults of a PC and, in
/// [`Tables::warnings`], the problems met on the way.
pub fn discover(memory: &impl PhysicalMemory, rsdp: Option<u64>, tables: &mut Tables) -> Result<(), Error> {
    tables.clear();
    let root = root::find(memory, rsdp, tables)?;
    for (kind, address) in KINDS.iter().zip(locate(&root, tables)) {
        match address.ok_or(Fault::Missing).and_then(|at| Table::open(memory, at, kind.signature, kind.minimum_bytes)) {
            Ok(table) => {
                tables.check_revision(kind.signature, &table);
                (kind.read)(&table, tables);
            }
            Err(Fault::Missing) if kind.may_be_missing => {}
            Err(fault) => tables.warn(kind.signature, fault),
        }
    }
    Ok(())
}

/// A table that is read, and its reader.
struct Kind {
    signature: Signature,
    minimum_bytes: u32,
    /// Most machines do not have it.
    may_be_missing: bool,
    read: fn(&Table<'_>, &mut Tables),
}

impl Kind {
    const fn new(signature: Signature, minimum_bytes: u32, read: fn(&Table<'_>, &mut Tables)) -> Self {
        Self { signature, minimum_bytes, may_be_missing: false, read }
    }
}

/// In the order in which they are read.
const KINDS: [Kind; 7] = [
    Kind::new(Signature::MADT, madt::MINIMUM_BYTES, madt::read),
    Kind::new(Signature::FADT, fadt::MINIMUM_BYTES, fadt::read),
    Kind::new(Signature::HPET, hpet::MINIMUM_BYTES, hpet::read),
    Kind::new(Signature::MCFG, mcfg::MINIMUM_BYTES, mcfg::read),
    Kind { may_be_missing: true, ..Kind::new(Signature::SRAT, srat::MINIMUM_BYTES, srat::read) },
    Kind { may_be_missing: true, ..Kind::new(Signature::IVRS, iommu::MINIMUM_BYTES, iommu::read_ivrs) },
    Kind { may_be_missing: true, ..Kind::new(Signature::DMAR, iommu::MINIMUM_BYTES, iommu::read_dmar) },
];

/// Returns where the first table of each kind is; later ones of the same kind are warned of.
fn locate(root: &root::RootTable<'_>, tables: &mut Tables) -> [Option<u64>; KINDS.len()] {
    let mut found = [None; KINDS.len()];
    root.for_each(tables, |tables, signature, address| {
        let Some(place) = KINDS.iter().position(|kind| kind.signature == signature) else { return };
        if found[place].is_some() {
            tables.warn(signature, Fault::Repeated { address });
        } else {
            found[place] = Some(address);
        }
    });
    found
}
