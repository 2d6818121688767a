// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ACPI root pointer by EFI's configuration tables, for a loader that gives the EFI system table and no root
//! pointer. (UEFI 2.10, sections 4.3 and 4.6.)
//!
//! ```text
//! boot_params  0x1c0 "EL64"   0x1c4 system table   0x1d8 its upper half
//! system table     0 "IBI SYST"   0x68 configuration tables   0x70 their address      entry  0 GUID  16 address
//! ```

use units::PhysAddr;

use crate::physical::{PhysicalMemory, u32_at, u64_at, wide};

const LOADER_SIGNATURE: u32 = u32::from_le_bytes(*b"EL64");
const SYSTEM_TABLE_SIGNATURE: u64 = u64::from_le_bytes(*b"IBI SYST");
const SYSTEM_TABLE_BYTES: usize = 0x78;
const ENTRY_BYTES: usize = 24;
/// More than any firmware has.
const MAXIMUM_ENTRIES: u64 = 256;
/// ACPI 2.0 and later, ACPI 1.0: the GUIDs as they lie in memory.
const GUIDS: [u128; 2] = [0x8188_3cc7_8000_22bc_11d3_e4f1_8868_e871, 0x4dc1_3f27_9000_169a_11d3_2d88_eb9d_2d30];

/// Returns the address of the root pointer. `tables` is where the configuration tables are, if they have moved since
/// the firmware wrote its system table, as a kernel reports that gave EFI other addresses.
pub(super) fn rsdp(memory: &impl PhysicalMemory, params: &[u8], tables: Option<PhysAddr>) -> Option<PhysAddr> {
    if u32_at(params, 0x1c0)? != LOADER_SIGNATURE {
        return None;
    }
    let system_table = memory.bytes(PhysAddr(wide(params, 0x1c4, 0x1d8)), SYSTEM_TABLE_BYTES)?;
    if u64_at(system_table, 0)? != SYSTEM_TABLE_SIGNATURE {
        return None;
    }
    let entries = u64_at(system_table, 0x68)?.min(MAXIMUM_ENTRIES);
    let at = tables.unwrap_or(PhysAddr(u64_at(system_table, 0x70)?));
    let entries = memory.bytes(at, entries as usize * ENTRY_BYTES)?;
    let address_of = |guid: &u128| {
        let entry = entries.chunks_exact(ENTRY_BYTES).find(|entry| entry[..16] == guid.to_le_bytes())?;
        u64_at(entry, 16).map(PhysAddr)
    };
    GUIDS.iter().find_map(address_of)
}
