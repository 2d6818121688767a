// SPDX-License-Identifier: MIT OR Apache-2.0
//! Firmware's description of the machine's IOMMUs, independent of the vendor.
//!
//! [`read`] fills a [`Description`] from one of two ACPI tables. They are untrusted bytes: every field is checked,
//! every list and loop has a bound, and what cannot be is passed over and leaves a [`TableProblem`]. A description has
//! a fixed size, since it is read before there is a heap.
//!
//! | module | content | source |
//! |---|---|---|
//! | [`ivrs`], `device` | AMD's table: units, memory; functions behind a unit | AMD 48882 rev 3.10, section 5.2 |
//! | [`dmar`], `path` | Intel's table: units, memory; functions by paths of bridges | VT-d rev 4.1, chapter 8 |
//! | `contents`, `lookup` | the description and its bounds; questions to it | |
//! | `unit`, `reserved`, `problem` | its parts | |
//! | `block` | structures of a table, one behind the other | |

mod block;
mod contents;
mod device;
pub mod dmar;
pub mod ivrs;
mod lookup;
mod path;
mod problem;
mod reserved;
mod unit;

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

pub use contents::{Description, MAX_INTERRUPTERS, MAX_PROBLEMS, MAX_RESERVED, MAX_SCOPES, MAX_UNITS};
pub use problem::{TableFault, TableProblem};
pub use reserved::{Defect, Reserved};
pub use unit::{Interrupter, InterrupterKind, Kind, LinkFlags, Scope, Settings, UnitDescription};

use firmware::table::Table;
use firmware::{Fault, PhysicalMemory, Problem, Signature};
use pci::ConfigSpace;

/// Fills `description` with what the tables that [`firmware::discover`] found state, beginning from a clean slate.
///
/// Intel's table names functions by paths of bridges. `config` reads their bus numbers: the description is of the buses
/// as they are numbered now. Of a machine that claims to have both tables AMD's is read. Without either the description
/// has no units.
///
/// # Errors
/// The table cannot be read any more.
pub fn read(
    memory: &dyn PhysicalMemory,
    tables: &firmware::Tables,
    config: &mut dyn ConfigSpace,
    description: &mut Description,
) -> Result<(), Problem> {
    description.clear();
    let open = |address, table, bytes| {
        Table::open(memory, address, table, bytes).map_err(|fault: Fault| Problem { table, fault })
    };
    if let Some(address) = tables.ivrs {
        ivrs::read(&open(address, Signature::IVRS, ivrs::MINIMUM_BYTES)?, description);
    } else if let Some(address) = tables.dmar {
        dmar::read(&open(address, Signature::DMAR, dmar::MINIMUM_BYTES)?, config, description);
    }
    Ok(())
}
