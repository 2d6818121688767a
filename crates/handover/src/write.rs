// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writing a record.

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromZeros as _, IntoBytes as _};

use crate::described::Described;
use crate::layout::{Header, Kind, MAGIC, Presence, REQUIRED, SectionHeader, VERSION};

/// The record's checksum.
pub(crate) use checksum::CRC_32 as CHECKSUM;

/// Payloads are padded to this.
pub(crate) const PADDING_BYTES: usize = 8;

/// The record does not fit the memory set aside for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

impl core::fmt::Display for Full {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("the hand-over record does not fit the memory set aside for it")
    }
}

/// Writes a record into memory: sections, then [`Writer::finish`].
#[derive(Debug)]
pub struct Writer<'a> {
    bytes: &'a mut [u8],
    used: usize,
    sections: u32,
    is_full: bool,
    version: u32,
}

impl<'a> Writer<'a> {
    /// A record at the start of `bytes`, without sections.
    pub fn new(bytes: &'a mut [u8]) -> Self {
        Self::for_version(bytes, VERSION)
    }

    /// A record for a reader of this version ([`crate::Image::version_to_write`]): sections and fields that it does not
    /// know are left out.
    pub fn for_version(bytes: &'a mut [u8], version: u32) -> Self {
        Self { bytes, used: size_of::<Header>(), sections: 0, is_full: false, version }
    }

    /// Adds a section of plain bytes.
    pub fn raw(&mut self, kind: Kind, payload: &[u8]) -> &mut Self {
        if kind.since() > self.version {
            return self;
        }
        self.section(kind as u32, flags(kind), |writer| writer.put(payload))
    }

    /// Adds a section that holds one thing.
    pub fn one<T: Described>(&mut self, kind: Kind, thing: &T) -> &mut Self {
        self.each(kind, [*thing])
    }

    /// Adds a section that holds any number of things.
    pub fn each<T: Described>(&mut self, kind: Kind, things: impl IntoIterator<Item = T>) -> &mut Self {
        if kind.since() > self.version {
            return self;
        }
        let known = T::bytes_in(self.version);
        self.section(kind as u32, flags(kind), |writer| {
            things.into_iter().for_each(|thing| writer.put(thing.as_bytes().get(..known).unwrap_or_default()))
        })
    }

    /// Adds a section of any kind: what a later version might.
    pub fn unknown(&mut self, kind: u32, flags: u32, payload: &[u8]) -> &mut Self {
        self.section(kind, flags, |writer| writer.put(payload))
    }

    fn section(&mut self, kind: u32, flags: u32, fill: impl FnOnce(&mut Self)) -> &mut Self {
        let header_at = self.used;
        self.put(SectionHeader::new_zeroed().as_bytes());
        let start = self.used;
        fill(self);
        let bytes = (self.used - start) as u64;
        let padding = self.used.next_multiple_of(PADDING_BYTES) - self.used;
        self.put(&[0; PADDING_BYTES][..padding]);
        let header = SectionHeader { kind: U32::new(kind), flags: U32::new(flags), bytes: U64::new(bytes) };
        if let Some(place) = self.bytes.get_mut(header_at..start).filter(|_| !self.is_full) {
            place.copy_from_slice(header.as_bytes());
        }
        self.sections += 1;
        self
    }

    /// Writes the header; returns how many bytes the record has.
    ///
    /// # Errors
    /// [`Full`] if something did not fit.
    pub fn finish(self) -> Result<usize, Full> {
        let record = self.bytes.get_mut(..self.used).filter(|_| !self.is_full).ok_or(Full)?;
        let mut header = Header {
            magic: MAGIC,
            version: U32::new(self.version),
            sections: U32::new(self.sections),
            bytes: U64::new(self.used as u64),
            checksum: U32::new(0),
            zero: U32::new(0),
        };
        let (place, rest) = record.split_at_mut_checked(size_of::<Header>()).ok_or(Full)?;
        header.checksum = U32::new(checksum(&header, rest));
        place.copy_from_slice(header.as_bytes());
        Ok(self.used)
    }

    fn put(&mut self, part: &[u8]) {
        let end = self.used.saturating_add(part.len());
        match self.bytes.get_mut(self.used..end) {
            Some(place) if !self.is_full => {
                place.copy_from_slice(part);
                self.used = end;
            }
            _ => self.is_full = true,
        }
    }
}

fn flags(kind: Kind) -> u32 {
    if kind.presence() == Presence::Optional { 0 } else { REQUIRED }
}

/// The checksum of a record whose header (checksum zero) and rest are given.
pub(crate) fn checksum(header: &Header, rest: &[u8]) -> u32 {
    let mut digest = CHECKSUM.digest();
    digest.update(header.as_bytes());
    digest.update(rest);
    digest.finalize()
}
