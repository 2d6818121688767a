// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests in the record: their identity, their memory, and where their state is put at the last moment.

use zerocopy::little_endian::{U32, U64};

use crate::macros::{flags, numbered, plain};

/// Bytes of a guest's name, padded with zeroes.
pub const GUEST_NAME_BYTES: usize = 32;
/// Bytes of a guest's reason, padded with zeroes.
pub const GUEST_REASON_BYTES: usize = 104;

plain! {
    /// One guest, whether it runs or not.
    pub struct Guest since 2 {
        /// Its name in the bundle.
        pub name: [u8; GUEST_NAME_BYTES] as "text",
        /// A digest of its entry in the bundle: the new image must find the same.
        pub config_digest: U64 as "digest",
        /// Since when it has been in its state.
        pub since_ns: U64 as "ns of the host's time",
        /// Since when it was in the state before it was paused; 0 where it is not paused.
        pub since_before_pause_ns: U64 as "ns of the host's time",
        /// Root of its nested page tables, among its memory for [`MemoryUse::NestedTables`]; 0 where it does not run.
        pub nested_root: U64 as "physical address",
        /// Its number: its place in the bundle, counted from 0.
        pub number: U32 as "number",
        /// vCPUs.
        pub vcpus: U32 as "count",
        /// A [`GuestState`]'s number.
        pub state: U32 as "number",
        /// Likewise, before it was paused; 0 where it is not paused.
        pub state_before_pause: U32 as "number",
        /// Of [`guest_flag`].
        pub flags: U32 as "flags",
        /// Zero.
        pub zero: U32 as "zero",
        /// The reason for its state, where there is more to report.
        pub reason: [u8; GUEST_REASON_BYTES] as "text",
        /// Since when a vCPU of its gets only a sliver of time; 0 where none does.
        pub throttled_since_ns: U64 as "ns of the host's time" since 3,
    }

    /// Memory of a guest, by rising physical address.
    pub struct GuestMemory since 2 {
        /// Its first byte: a multiple of 4 KiB.
        pub start: U64 as "physical address",
        /// Its length: a multiple of 4 KiB.
        pub bytes: U64 as "bytes",
        /// Address at which the guest sees it; 0 for tables.
        pub guest_address: U64 as "guest-physical address",
        /// [`Guest::number`].
        pub guest: U32 as "number",
        /// A [`MemoryUse`]'s number.
        pub purpose: U32 as "number",
    }

    /// Place of a block: memory that is kept for [`crate::layout::Purpose::Blocks`].
    pub struct BlockPlace since 2 {
        /// Its first byte: a multiple of 4 KiB.
        pub start: U64 as "physical address",
        /// Bytes set aside for it: a multiple of 4 KiB.
        pub bytes: U64 as "bytes",
        /// A [`crate::state::BlockKind`]'s number.
        pub kind: U32 as "number",
        /// [`Guest::number`]; 0 for the host's.
        pub guest: U32 as "number",
        /// The vCPU's number in its guest; 0 for all else.
        pub vcpu: U32 as "number",
        /// The old image's number for the CPU that carries it over.
        pub cpu: U32 as "number",
        /// The CPU to which a virtual one belongs; the same for all else.
        pub own_cpu: U32 as "number",
        /// Zero.
        pub zero: U32 as "zero",
    }
}

numbered! {
    /// State of a guest.
    pub enum GuestState since 2 {
        /// Its CPUs run.
        Running = 1,
        /// Its CPUs are halted by the operator.
        Paused = 2,
        /// It has ended, or was not started yet.
        Stopped = 3,
        /// It could not be started or go on.
        Failed = 4,
        /// Its kernel has panicked.
        Panicked = 5,
        /// One of its CPUs spins with interrupts disabled.
        Hung = 6,
    }

    /// Use of a guest's memory.
    pub enum MemoryUse since 2 {
        /// The guest's own.
        Memory = 1,
        /// Its nested page tables.
        NestedTables = 2,
    }
}

flags! {
    /// Bits of [`Guest::flags`].
    pub mod guest_flag: u32, since 2 {
        /// There is a run of it: memory, tables and blocks.
        HAS_RUN = 0,
        /// Its vCPUs stand still.
        STANDS_STILL = 1,
        /// It has reported that it panicked; further reports are ignored.
        HAS_REPORTED = 2,
        /// Its vCPUs stand still for a client that reads its state, and go on once no client does.
        IS_HELD = 3 since 4,
    }
}
