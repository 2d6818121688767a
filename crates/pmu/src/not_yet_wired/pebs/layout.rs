// SPDX-License-Identifier: MIT OR Apache-2.0
//! Layout of PEBS in memory: the management area at IA32_DS_AREA, and the records of format 4 and later.

/// Offsets into the management area of a 64-bit CPU, in bytes (Intel SDM vol. 3, figure 18-12). The fields before these
/// are of the branch trace store.
pub mod ds {
    /// Start of the buffer.
    pub const BASE: u64 = 0x20;
    /// Address of the next record; the CPU moves it.
    pub const INDEX: u64 = 0x28;
    /// End of the buffer: no record goes beyond it.
    pub const MAXIMUM: u64 = 0x30;
    /// An index that has got so far interrupts.
    pub const THRESHOLD: u64 = 0x38;
    /// Reset value of the first general counter after its record; one for each of eight.
    pub const GENERAL_RESET: u64 = 0x40;
    /// The same of those of fixed purpose.
    pub const FIXED_RESET: u64 = 0x80;
}

/// Bits of MSR_PEBS_DATA_CFG: what a record has behind its basic group.
#[derive(Clone, Copy, Debug)]
pub struct Group;

impl Group {
    /// The access: address, source, latency, transaction.
    pub const MEMORY: u64 = 1;
    /// RFLAGS, RIP and the general registers.
    pub const REGISTERS: u64 = 1 << 1;
    /// XMM0 to XMM15.
    pub const VECTORS: u64 = 1 << 2;
    /// Last branches, the youngest first.
    pub const BRANCHES: u64 = 1 << 3;
    /// Number of branches, less one.
    pub const BRANCH_COUNT: u64 = 0xff << 24;
}

/// Returns how long a record is. The basic group comes first: the groups in it (below bit 48) and its length (above),
/// the instruction's address, which counters it is for, the time stamp.
pub const fn record_bytes(data_config: u64) -> u64 {
    const BASIC: u64 = 32;
    const fn part(data_config: u64, group: u64, bytes: u64) -> u64 {
        if data_config & group != 0 { bytes } else { 0 }
    }
    let branches = ((data_config & Group::BRANCH_COUNT) >> 24) + 1;
    BASIC
        + part(data_config, Group::MEMORY, 32)
        + part(data_config, Group::REGISTERS, 144)
        + part(data_config, Group::VECTORS, 256)
        + part(data_config, Group::BRANCHES, 24 * branches)
}
