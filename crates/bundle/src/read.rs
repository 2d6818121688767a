// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading a bundle.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::archive::{Entries, Entry};
use crate::checksum::crc32;
use crate::error::{BundleError, Problem};
use crate::guest::GuestConfig;
use crate::limits;
use crate::manifest::{FileRecord, MANIFEST_MAGIC, MANIFEST_NAME, MANIFEST_VERSION, Manifest, OLDEST_MANIFEST_VERSION};
use crate::oldest::OldManifest;

pub(crate) mod check;

/// Bytes around the encoded manifest: magic and version before it, the checksum behind it.
const MANIFEST_HEAD_BYTES: usize = 6;
const MANIFEST_TAIL_BYTES: usize = 4;

/// A bundle in memory: its manifest, decoded, and its files where they lie.
#[derive(Clone, Debug)]
pub struct Bundle<'a> {
    manifest: Manifest,
    /// By name.
    files: BTreeMap<&'a str, File<'a>>,
}

/// A file of the archive with what the manifest states of it.
#[derive(Clone, Copy, Debug)]
struct File<'a> {
    entry: Entry<'a>,
    crc32: u32,
}

/// The files one guest needs, not verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestFiles<'a> {
    /// Its kernel.
    pub kernel: &'a [u8],
    /// Its initial RAM disk.
    pub initrd: Option<&'a [u8]>,
    /// Its modules: name and content, in order.
    pub modules: Vec<(&'a str, &'a [u8])>,
}

impl<'a> Bundle<'a> {
    /// Reads the archive's headers and the manifest. The files' bytes are not checked: see [`Self::verify`]. Bytes
    /// behind the trailer are ignored.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, BundleError> {
        let mut entries = Entries::new(bytes);
        let first = entries.next()?;
        let first = first.filter(|entry| entry.name == MANIFEST_NAME).ok_or(BundleError {
            entry: first.map(|entry| entry.name.to_string()).unwrap_or_default(),
            offset_bytes: 0,
            problem: Problem::NoManifest,
        })?;
        let at_manifest = |problem| BundleError { entry: MANIFEST_NAME.to_string(), offset_bytes: 0, problem };
        let manifest = decode_manifest(first.content).map_err(at_manifest)?;
        check::manifest(&manifest).map_err(at_manifest)?;
        let files = match_files(&mut entries, &manifest.files)?;
        Ok(Self { manifest, files })
    }

    /// Checks the first bytes of a bundle that is still arriving, so that another file is refused before the rest of it
    /// arrives.
    ///
    /// # Errors
    /// No bundle begins so.
    pub fn check_head(head: &[u8]) -> Result<(), BundleError> {
        match Entries::new(head).next() {
            Ok(Some(entry)) if entry.name == MANIFEST_NAME => Ok(()),
            Ok(other) => Err(BundleError {
                entry: other.map(|entry| entry.name.to_string()).unwrap_or_default(),
                offset_bytes: 0,
                problem: Problem::NoManifest,
            }),
            // The missing part may still come.
            Err(BundleError { problem: Problem::Truncated { .. }, entry, .. })
                if entry.is_empty() || entry == MANIFEST_NAME =>
            {
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Returns what is to be run.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Returns a file's bytes, not verified.
    pub fn file(&self, name: &str) -> Result<&'a [u8], BundleError> {
        self.find(name).map(|(_, file)| file.entry.content)
    }

    /// Returns a file's bytes, after a check of the manifest's checksum. Costs a pass over the file.
    pub fn verify(&self, name: &str) -> Result<&'a [u8], BundleError> {
        let (_, File { entry, crc32: stated }) = self.find(name)?;
        let computed = crc32(entry.content);
        if computed == stated {
            return Ok(entry.content);
        }
        let problem = Problem::BadChecksum { stated, computed };
        Err(BundleError { entry: entry.name.to_string(), offset_bytes: entry.offset_bytes, problem })
    }

    /// Returns all files that `guest` names, not verified.
    pub fn guest_files(&self, guest: &GuestConfig) -> Result<GuestFiles<'a>, BundleError> {
        let module = |name: &String| self.find(name).map(|(name, file)| (name, file.entry.content));
        Ok(GuestFiles {
            kernel: self.file(&guest.kernel)?,
            initrd: guest.initrd.as_deref().map(|name| self.file(name)).transpose()?,
            modules: guest.modules.iter().map(module).collect::<Result<_, _>>()?,
        })
    }

    /// Returns all files that `guest` names, after a check of every checksum. Costs a pass over the files.
    pub fn verified_guest_files(&self, guest: &GuestConfig) -> Result<GuestFiles<'a>, BundleError> {
        let names = [&guest.kernel].into_iter().chain(&guest.initrd).chain(&guest.modules);
        names.into_iter().try_for_each(|name| self.verify(name).map(drop))?;
        self.guest_files(guest)
    }

    fn find(&self, name: &str) -> Result<(&'a str, File<'a>), BundleError> {
        let found = self.files.get_key_value(name).map(|(&name, &file)| (name, file));
        found.ok_or_else(|| BundleError { entry: name.to_string(), offset_bytes: 0, problem: Problem::Missing })
    }
}

pub(crate) fn decode_manifest(content: &[u8]) -> Result<Manifest, Problem> {
    if content.len() > limits::MANIFEST_BYTES || !content.starts_with(&MANIFEST_MAGIC) {
        return Err(Problem::NoManifest);
    }
    let Some((covered, checksum)) = content.split_last_chunk::<MANIFEST_TAIL_BYTES>() else {
        return Err(Problem::NoManifest);
    };
    let (stated, computed) = (u32::from_le_bytes(*checksum), crc32(covered));
    if stated != computed {
        return Err(Problem::BadChecksum { stated, computed });
    }
    let Some((&[.., low, high], encoded)) = covered.split_first_chunk::<MANIFEST_HEAD_BYTES>() else {
        return Err(Problem::NoManifest);
    };
    let version = u16::from_le_bytes([low, high]);
    match version {
        OLDEST_MANIFEST_VERSION | MANIFEST_VERSION => decode(version, encoded).ok_or(Problem::Malformed),
        found => Err(Problem::UnknownVersion { found }),
    }
}

fn decode(version: u16, encoded: &[u8]) -> Option<Manifest> {
    if version == OLDEST_MANIFEST_VERSION {
        let (manifest, rest) = postcard::take_from_bytes::<OldManifest>(encoded).ok()?;
        return rest.is_empty().then(|| manifest.into());
    }
    cbor::read(encoded).ok()
}

/// Pairs the archive's further entries with the manifest's records of them: same names, same lengths, same order.
fn match_files<'a>(
    entries: &mut Entries<'a>,
    records: &[FileRecord],
) -> Result<BTreeMap<&'a str, File<'a>>, BundleError> {
    let mut files = BTreeMap::new();
    let mut records = records.iter();
    while let Some(entry) = entries.next()? {
        let at_entry =
            |problem| BundleError { entry: entry.name.to_string(), offset_bytes: entry.offset_bytes, problem };
        let is_it = |record: &&FileRecord| record.name == entry.name && record.bytes == entry.content.len() as u64;
        let record = records.next().filter(is_it).ok_or_else(|| at_entry(Problem::NotAsListed))?;
        if files.insert(entry.name, File { entry, crc32: record.crc32 }).is_some() {
            return Err(at_entry(Problem::Duplicate));
        }
    }
    match records.next() {
        None => Ok(files),
        Some(record) => Err(BundleError { entry: record.name.clone(), offset_bytes: 0, problem: Problem::Missing }),
    }
}
