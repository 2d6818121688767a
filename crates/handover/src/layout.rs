// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bytes of a record: its header, and the contents of each section. Changing any of this raises [`VERSION`]; a test
//! holds the bytes to it.

mod assignments;
mod deadline;
pub mod guests;
mod numbers;
mod ports;
mod presence;
mod revoked;
mod signer;
mod text;

use zerocopy::little_endian::{U32, U64};

use crate::macros::{numbered, plain};

pub use self::assignments::{Assignment, MAX_ASSIGNMENTS, assignment_flag};
pub use self::deadline::{Deadline, MAX_DEADLINE_SECONDS};
pub use self::numbers::{CheckPolicy, CpuState, Purpose, Reason, control_flag};
pub use self::ports::{DROP_REASONS, MAX_PORTS, PortCounters};
pub use self::presence::Presence;
pub use self::revoked::{MAX_REVOKED, RevokedKey};
pub use self::signer::Signer;
pub use self::text::{padded, unpadded};
pub use crate::version::{OLDEST_VERSION, VERSION};

/// Magic number at the start of a record.
pub const MAGIC: [u8; 8] = *b"BatnHand";
/// Section flag: a reader that does not know this section refuses the record.
pub const REQUIRED: u32 = 1;
/// Bytes of an image's version in text, padded with zeroes.
pub const VERSION_TEXT_BYTES: usize = 24;
/// Bytes of a module's command line, padded with zeroes.
pub const MODULE_LINE_BYTES: usize = 128;
/// The most pieces of damaged memory in a record. Memory that fails in more places is for `bad-memory` and new modules.
pub const MAX_RETIRED: usize = 64;

plain! {
    /// The first bytes of a record.
    pub struct Header since 1 {
        /// [`MAGIC`].
        pub magic: [u8; 8] as "text",
        /// The writer's [`VERSION`].
        pub version: U32 as "number",
        /// Number of sections.
        pub sections: U32 as "count",
        /// Bytes of the whole record, this header included.
        pub bytes: U64 as "bytes",
        /// CRC-32 (ISO HDLC) of the whole record, this field as zero.
        pub checksum: U32 as "CRC-32",
        /// Zero.
        pub zero: U32 as "zero",
    }

    /// Header of each section, before its payload.
    pub struct SectionHeader since 1 {
        /// A [`Kind`]'s number.
        pub kind: U32 as "number",
        /// [`REQUIRED`] or nothing.
        pub flags: U32 as "flags",
        /// Bytes of the payload, without the padding that follows it.
        pub bytes: U64 as "bytes",
    }

    /// The host: the image that hands over, and the reason.
    pub struct Host since 1 {
        /// Images that have run since the machine was powered on, the new one included.
        pub generation: U64 as "count",
        /// A [`Reason`]'s number.
        pub reason: U32 as "number",
        /// 1 if the CPUs' time stamp counters agree, as far as is known.
        pub clocks_agree: U32 as "flag",
        /// Physical address of the new image's slot: where 2 MiB above its link base lies. A multiple of 2 MiB.
        pub slot_start: U64 as "physical address",
        /// Bytes of the slot.
        pub slot_bytes: U64 as "bytes",
        /// The old image's version in text.
        pub version: [u8; VERSION_TEXT_BYTES] as "text",
    }

    /// A region of the memory map, as the firmware's loader reported it.
    pub struct Region since 1 {
        /// Its first byte.
        pub start: U64 as "physical address",
        /// Its length.
        pub bytes: U64 as "bytes",
        /// ACPI's number for its type (1 usable, 2 reserved, 3 ACPI tables, 4 ACPI non-volatile, 5 unusable, 7
        /// persistent).
        pub kind: U32 as "number",
        /// Zero.
        pub zero: U32 as "zero",
    }

    /// A file that the loader put into memory.
    pub struct Module since 1 {
        /// Its first byte.
        pub start: U64 as "physical address",
        /// Its length.
        pub bytes: U64 as "bytes",
        /// The module's command line, by the boot loader.
        pub line: [u8; MODULE_LINE_BYTES] as "text",
    }

    /// The clock, which never stopped.
    pub struct Clock since 1 {
        /// Ticks of the time stamp counter in a second; not zero.
        pub tsc_hz: U64 as "ticks/s",
        /// The counter when the host was entered first.
        pub tsc_at_boot: U64 as "ticks",
        /// Ticks of the local APIC's timer for each of the counter, 32 bits of them behind the point.
        pub apic_ratio: U64 as "APIC ticks/tick * 2^32",
        /// Seconds since 1970 at `tsc_at_boot`.
        pub unix_seconds_at_boot: U64 as "s",
    }

    /// The pages that outlive the image, and how to go on from there.
    pub struct SwitchPages since 1 {
        /// Version of the mailboxes' layout (`bringup::park`), or in an update of the pages' (`update::trial`).
        pub mailbox_version: U32 as "number",
        /// Zero.
        pub zero: U32 as "zero",
        /// Page tables that show the switch pages, the new image at its link addresses and the first 4 GiB as the
        /// direct map.
        pub root: U64 as "physical address",
    }

    /// One CPU; the first is the one that hands over.
    pub struct Cpu since 1 {
        /// Its local APIC's identifier.
        pub apic_id: U32 as "number",
        /// A [`CpuState`]'s number.
        pub state: U32 as "number",
        /// Physical address of its mailbox, or in an update of its page (`update::trial`); 0 where it has none.
        pub mailbox: U64 as "physical address",
        /// The old image's number for it.
        pub number: U32 as "number",
        /// Zero.
        pub zero: U32 as "zero",
    }

    /// Memory that is in use besides the modules: the new image must not give it to others.
    pub struct Kept since 1 {
        /// Its first byte: a multiple of 4 KiB.
        pub start: U64 as "physical address",
        /// Its length: a multiple of 4 KiB.
        pub bytes: U64 as "bytes",
        /// A [`Purpose`]'s number.
        pub purpose: U32 as "number",
        /// Zero.
        pub zero: U32 as "zero",
    }

    /// Times of the host's steps, in ticks of the time stamp counter.
    pub struct Stamps since 1 {
        /// The restart was asked for.
        pub asked: U64 as "ticks",
        /// Everything that can be prepared was: from here on guests stop.
        pub stopped: U64 as "ticks",
        /// Every CPU was parked or given up.
        pub parked: U64 as "ticks",
        /// The new image was entered.
        pub left: U64 as "ticks",
    }

    /// The state of the control channel's session, so that the other end notices no break.
    pub struct Control since 1 {
        /// The request that is still to be answered; meaningful with [`control_flag::IS_ASKED`].
        pub request: U32 as "number",
        /// Of [`control_flag`].
        pub flags: U32 as "flags",
        /// Log records of this time or later are still to be streamed, in ticks of the time stamp counter.
        pub log_since: U64 as "ticks",
        /// The next event to be streamed.
        pub next_event: U64 as "number",
        /// The number that the next event gets.
        pub events: U64 as "count",
    }

    /// The check of the new image.
    pub struct Checked since 2 {
        /// A [`CheckPolicy`]'s number.
        pub policy: U32 as "number",
        /// Zero.
        pub zero: U32 as "zero",
        /// Bytes hashed while guests ran.
        pub staged_bytes: U64 as "bytes",
        /// Ticks that it took, waiting not counted.
        pub staged_ticks: U64 as "ticks",
        /// Bytes hashed while no guest ran.
        pub blackout_bytes: U64 as "bytes",
        /// Ticks that it took.
        pub blackout_ticks: U64 as "ticks",
    }

    /// Memory that machine checks have found damaged: the new image uses it for nothing. Memory that the option
    /// `bad-memory` names is in the command line and not here.
    pub struct Retired since 4 {
        /// Its first byte: a multiple of 4 KiB.
        pub start: U64 as "physical address",
        /// Its length: a multiple of 4 KiB.
        pub bytes: U64 as "bytes",
    }

    /// Range of one CPU's part of the old image's log: a ring that describes itself (`klog::layout`).
    pub struct LogRing since 1 {
        /// Physical address of the first byte.
        pub start: U64 as "physical address",
        /// Its length.
        pub bytes: U64 as "bytes",
        /// The number that its next record would have got: the new image counts on from there.
        pub records: U64 as "count",
        /// The old image's number for the CPU.
        pub cpu: U32 as "number",
        /// Zero.
        pub zero: U32 as "zero",
    }
}

numbered! {
    /// Kind of a section.
    pub enum Kind since 1 {
        /// One [`Host`].
        Host = 1,
        /// [`Region`]s, by rising address.
        MemoryMap = 2,
        /// [`Module`]s, in the loader's order.
        Modules = 3,
        /// The host's command line: UTF-8.
        CommandLine = 4,
        /// Address of the ACPI tables' root (RSDP): eight bytes, or none.
        Firmware = 5,
        /// One [`Clock`].
        Clock = 6,
        /// One [`SwitchPages`].
        SwitchPages = 7,
        /// [`Cpu`]s that were online, the one that hands over first.
        Cpus = 8,
        /// [`Kept`] memory.
        Kept = 9,
        /// One [`Stamps`]; may be passed over.
        Stamps = 10,
        /// One [`Control`]; may be passed over.
        Control = 11,
        /// [`LogRing`]s; may be passed over.
        Log = 12,
        /// [`guests::Guest`]s, by their numbers. None where guests start again.
        Guests = 13 since 2,
        /// [`guests::GuestMemory`], by rising address.
        GuestMemory = 14 since 2,
        /// [`guests::BlockPlace`]s.
        Blocks = 15 since 2,
        /// One [`Checked`]; may be passed over.
        Checked = 20 since 2,
        /// Build of the image that hands over, by its note: UTF-8; a reader may skip it.
        Build = 30 since 4,
        /// [`Retired`] memory, at most [`MAX_RETIRED`] pieces; may be passed over.
        Retired = 31 since 4,
        /// [`Assignment`]s, oldest first, at most [`MAX_ASSIGNMENTS`]; may be passed over.
        Assignments = 32 since 4,
        /// [`PortCounters`], at most [`MAX_PORTS`]. None where no guest is on a network.
        Ports = 33 since 4,
        /// One [`Deadline`]. None where the update needs no confirmation.
        Deadline = 34 since 4,
        /// [`RevokedKey`]s, at most [`MAX_REVOKED`]. None where none was revoked.
        RevokedKeys = 35 since 4,
        /// One [`Signer`]; may be passed over. None where the new image is not signed or not checked.
        Signer = 36 since 4,
    }
}

impl Kind {
    /// Returns whether it must be there.
    pub const fn presence(self) -> Presence {
        match self {
            Self::Stamps | Self::Control | Self::Log | Self::Checked => Presence::Optional,
            Self::Build | Self::Retired | Self::Assignments | Self::Signer => Presence::Optional,
            Self::Guests | Self::GuestMemory | Self::Blocks | Self::Ports => Presence::Understood,
            Self::Deadline | Self::RevokedKeys => Presence::Understood,
            _ => Presence::Required,
        }
    }

    /// Returns whether a record without it is refused.
    pub fn is_required(self) -> bool {
        self.presence() == Presence::Required
    }

    /// The first version that has it.
    pub fn since(self) -> u32 {
        let its = Self::NUMBERS.all.iter().find(|(_, number, _)| *number == self as u32);
        its.map_or(0, |(_, _, since)| *since)
    }
}
