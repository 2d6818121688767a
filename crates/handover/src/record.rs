// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading a record: checked once, as a whole, before anything is taken from it.

use units::{PAGE_BYTES, PHYSICAL_LIMIT, PhysAddr, PhysRange};
use zerocopy::FromBytes as _;
use zerocopy::little_endian::U32;

use crate::described::Described;
use crate::error::RecordError;
use crate::items::Items;
use crate::layout::guests::{BlockPlace, Guest, GuestMemory};
use crate::layout::{
    Assignment, Checked, Clock, Control, Cpu, Deadline, Header, Host, Kept, Kind, LogRing, MAGIC, MAX_ASSIGNMENTS,
    MAX_PORTS, MAX_RETIRED, MAX_REVOKED, Module, OLDEST_VERSION, PortCounters, Presence, Purpose, REQUIRED, Region,
    Retired, RevokedKey, SectionHeader, Signer, Stamps, SwitchPages, VERSION,
};
use crate::write::{PADDING_BYTES, checksum};

/// The most bytes a record has: what the old image sets aside, and the new one reads at most.
pub const MAX_RECORD_BYTES: usize = 256 * 1024;

mod guests;

/// An image's slot begins at a multiple of this.
pub const SLOT_ALIGNMENT: u64 = 2 << 20;

/// A record that has been checked: every section is there that must be, and what it reports is possible.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// The image that hands over, and why.
    pub host: Host,
    /// The memory map.
    pub memory_map: Items<'a, Region>,
    /// The loader's modules.
    pub modules: Items<'a, Module>,
    /// The host's command line.
    pub command_line: &'a str,
    /// Address of the ACPI tables' root (RSDP).
    pub rsdp: Option<PhysAddr>,
    /// The clock.
    pub clock: Clock,
    /// The pages between the images.
    pub switch_pages: SwitchPages,
    /// The CPUs, the one that hands over first.
    pub cpus: Items<'a, Cpu>,
    /// Memory in use.
    pub kept: Items<'a, Kept>,
    /// The old image's time stamps.
    pub stamps: Option<Stamps>,
    /// The state of the control channel's session.
    pub control: Option<Control>,
    /// The old image's log, a ring for each CPU that has one.
    pub log: Items<'a, LogRing>,
    /// The guests, by their numbers; none where they start again.
    pub guests: Items<'a, Guest>,
    /// Memory of guests, by rising address.
    pub guest_memory: Items<'a, GuestMemory>,
    /// Blocks of the state that is written after the record.
    pub blocks: Items<'a, BlockPlace>,
    /// The version that it is written in.
    pub version: u32,
    /// The check of the new image.
    pub checked: Option<Checked>,
    /// Build of the image that hands over; empty where its note gives none.
    pub build: &'a str,
    /// Memory that machine checks have found damaged.
    pub retired: Items<'a, Retired>,
    /// Assignments of PCI functions that differ from the guests' configurations, oldest first.
    pub assignments: Items<'a, Assignment>,
    /// Traffic that has passed the ports of networks between guests.
    pub ports: Items<'a, PortCounters>,
    /// The deadline for the confirmation of this update, if it needs one.
    pub deadline: Option<Deadline>,
    /// Control keys that were revoked while the host ran.
    pub revoked: Items<'a, RevokedKey>,
    /// The signer of the new image; `None` where it is not signed or not checked.
    pub signer: Option<Signer>,
}

/// The payloads by kind.
struct Sections<'a> {
    found: [Option<&'a [u8]>; Kind::ALL.len()],
    version: u32,
}

impl<'a> Record<'a> {
    /// Returns how many bytes the record has that begins with `header`.
    ///
    /// # Errors
    /// [`RecordError`] if no record begins so.
    pub fn bytes(header: &[u8]) -> Result<usize, RecordError> {
        let (header, _) = Header::ref_from_prefix(header).map_err(|_| RecordError::BadLength(header.len() as u64))?;
        if header.magic != MAGIC {
            return Err(RecordError::BadMagic);
        }
        let (version, bytes) = (header.version.get(), header.bytes.get());
        if !(OLDEST_VERSION..=VERSION).contains(&version) {
            return Err(RecordError::OtherVersion(version));
        }
        let is_possible = (size_of::<Header>() as u64..=MAX_RECORD_BYTES as u64).contains(&bytes);
        if is_possible { Ok(bytes as usize) } else { Err(RecordError::BadLength(bytes)) }
    }

    /// Reads the record at the start of `bytes`.
    ///
    /// # Errors
    /// [`RecordError`] with the first thing that is wrong.
    pub fn open(bytes: &'a [u8]) -> Result<Self, RecordError> {
        let length = Self::bytes(bytes)?;
        let record = bytes.get(..length).ok_or(RecordError::BadLength(length as u64))?;
        let (header, rest) = Header::ref_from_prefix(record).map_err(|_| RecordError::BadLength(length as u64))?;
        if checksum(&Header { checksum: U32::new(0), ..*header }, rest) != header.checksum.get() {
            return Err(RecordError::BadChecksum);
        }
        let version = header.version.get();
        Self::from_sections(&sections(header.sections.get(), version, rest)?)?.check()
    }

    fn from_sections(found: &Sections<'a>) -> Result<Self, RecordError> {
        Ok(Self {
            host: found.one(Kind::Host)?,
            memory_map: found.all(Kind::MemoryMap)?,
            modules: found.all(Kind::Modules)?,
            command_line: core::str::from_utf8(found.payload(Kind::CommandLine)?)
                .map_err(|_| RecordError::BadSection(Kind::CommandLine))?,
            rsdp: match *found.payload(Kind::Firmware)? {
                [] => None,
                [a, b, c, d, e, f, g, h] => Some(PhysAddr(u64::from_le_bytes([a, b, c, d, e, f, g, h]))),
                _ => return Err(RecordError::BadSection(Kind::Firmware)),
            },
            clock: found.one(Kind::Clock)?,
            switch_pages: found.one(Kind::SwitchPages)?,
            cpus: found.all(Kind::Cpus)?,
            kept: found.all(Kind::Kept)?,
            stamps: found.optional(Kind::Stamps)?,
            control: found.optional(Kind::Control)?,
            checked: found.optional(Kind::Checked)?,
            log: found.all(Kind::Log)?,
            guests: found.all(Kind::Guests)?,
            guest_memory: found.all(Kind::GuestMemory)?,
            blocks: found.all(Kind::Blocks)?,
            version: found.version,
            build: found
                .payload(Kind::Build)
                .ok()
                .and_then(|bytes| core::str::from_utf8(bytes).ok())
                .unwrap_or_default(),
            retired: found.all(Kind::Retired)?,
            assignments: found.all(Kind::Assignments)?,
            ports: found.all(Kind::Ports)?,
            deadline: found.optional(Kind::Deadline)?,
            revoked: found.all(Kind::RevokedKeys)?,
            signer: found.optional(Kind::Signer)?,
        })
    }

    /// Checks the conditions that hold whatever the rest of the record.
    fn check(self) -> Result<Self, RecordError> {
        let slot = range(self.host.slot_start.get(), self.host.slot_bytes.get());
        let is_slot = slot.is_some_and(|slot| slot.is_aligned(SLOT_ALIGNMENT));
        let is_frames = |kept: Kept| range(kept.start.get(), kept.bytes.get()).is_some();
        let is_handing_over = !self.cpus.is_empty();
        let is_retired = |retired: Retired| range(retired.start.get(), retired.bytes.get()).is_some();
        let is_assignments =
            self.assignments.len() <= MAX_ASSIGNMENTS && self.assignments.iter().all(|one| one.is_possible());
        let checks = [
            (is_slot && self.host.generation.get() > 1, Kind::Host),
            (!self.memory_map.is_empty(), Kind::MemoryMap),
            (self.clock.tsc_hz.get() > 0, Kind::Clock),
            (
                self.switch_pages.root.get().is_multiple_of(PAGE_BYTES) && self.switch_pages.root.get() > 0,
                Kind::SwitchPages,
            ),
            (is_handing_over, Kind::Cpus),
            (self.kept.iter().all(is_frames), Kind::Kept),
            (self.log.iter().all(|ring| self.keeps(Purpose::Log, ring.start.get(), ring.bytes.get())), Kind::Log),
            (self.retired.len() <= MAX_RETIRED && self.retired.iter().all(is_retired), Kind::Retired),
            (is_assignments, Kind::Assignments),
            (self.ports.len() <= MAX_PORTS, Kind::Ports),
            (self.deadline.is_none_or(|deadline| deadline.is_possible()), Kind::Deadline),
            (self.revoked.len() <= MAX_REVOKED, Kind::RevokedKeys),
        ];
        match checks.iter().find(|(holds, _)| !holds) {
            Some((_, kind)) => Err(RecordError::BadSection(*kind)),
            None => self.check_guests().map(|()| self),
        }
    }

    /// Returns whether a piece of memory is all of what is kept for a purpose at its place.
    fn keeps(&self, purpose: Purpose, start: u64, bytes: u64) -> bool {
        let range = range(start, bytes);
        range.is_some() && self.kept_for(purpose).any(|kept| range == Some(kept))
    }

    /// Returns where the new image lies.
    pub fn slot(&self) -> PhysRange {
        range(self.host.slot_start.get(), self.host.slot_bytes.get()).unwrap_or_default()
    }

    /// Kept memory for this purpose.
    pub fn kept_for(&self, purpose: Purpose) -> impl Iterator<Item = PhysRange> + use<'a> {
        let of_it = self.kept.iter().filter(move |kept| kept.purpose.get() == purpose as u32);
        of_it.filter_map(|kept| range(kept.start.get(), kept.bytes.get()))
    }

    /// Memory that machine checks have found damaged.
    pub fn retired_ranges(&self) -> impl Iterator<Item = PhysRange> + use<'a> {
        self.retired.iter().filter_map(|retired| range(retired.start.get(), retired.bytes.get()))
    }

    /// All memory that must not be given to others: what is kept, and what guests have.
    pub fn kept_ranges(&self) -> impl Iterator<Item = PhysRange> + use<'a> {
        let kept = self.kept.iter().filter_map(|kept| range(kept.start.get(), kept.bytes.get()));
        kept.chain(self.guest_memory.iter().filter_map(|memory| range(memory.start.get(), memory.bytes.get())))
    }
}

/// Whole frames inside physical memory, at least one.
fn range(start: u64, bytes: u64) -> Option<PhysRange> {
    let range = PhysRange::from_start(PhysAddr(start), bytes)?;
    (!range.is_empty() && range.is_aligned(PAGE_BYTES) && range.end().0 <= PHYSICAL_LIMIT).then_some(range)
}

fn sections(count: u32, version: u32, mut rest: &[u8]) -> Result<Sections<'_>, RecordError> {
    let mut found = [None; Kind::ALL.len()];
    for _ in 0..count {
        let (header, behind) = SectionHeader::ref_from_prefix(rest).map_err(|_| RecordError::BadCount)?;
        let kind = header.kind.get();
        let cut = RecordError::CutSection { kind };
        let bytes = usize::try_from(header.bytes.get()).map_err(|_| cut)?;
        let padded = bytes.checked_next_multiple_of(PADDING_BYTES).ok_or(cut)?;
        let payload = behind.get(..bytes).ok_or(cut)?;
        rest = behind.get(padded..).ok_or(cut)?;
        match Kind::ALL.iter().position(|known| *known as u32 == kind) {
            Some(place) if found[place].is_some() => return Err(RecordError::Duplicate(Kind::ALL[place])),
            Some(place) => found[place] = Some(payload),
            None if header.flags.get() & REQUIRED != 0 => return Err(RecordError::UnknownSection(kind)),
            None => {}
        }
    }
    if rest.is_empty() { Ok(Sections { found, version }) } else { Err(RecordError::BadCount) }
}

impl<'a> Sections<'a> {
    fn find(&self, kind: Kind) -> Option<&'a [u8]> {
        let place = Kind::ALL.iter().position(|known| *known == kind)?;
        self.found[place]
    }

    fn payload(&self, kind: Kind) -> Result<&'a [u8], RecordError> {
        self.find(kind).ok_or(RecordError::Missing(kind))
    }

    /// One thing, all of it and nothing else.
    fn one<T: Described>(&self, kind: Kind) -> Result<T, RecordError> {
        let items = Items::new(self.payload(kind)?, self.version).filter(|items: &Items<'_, T>| items.len() == 1);
        items.and_then(|items| items.get(0)).ok_or(RecordError::BadSection(kind))
    }

    fn optional<T: Described>(&self, kind: Kind) -> Result<Option<T>, RecordError> {
        self.find(kind).map(|_| self.one(kind)).transpose()
    }

    /// Any number of things; none where the section may be missing and is.
    fn all<T: Described>(&self, kind: Kind) -> Result<Items<'a, T>, RecordError> {
        match self.find(kind) {
            None if kind.presence() != Presence::Required => Ok(Items::EMPTY),
            None => Err(RecordError::Missing(kind)),
            Some(payload) => Items::new(payload, self.version).ok_or(RecordError::BadSection(kind)),
        }
    }
}
