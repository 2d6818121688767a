// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writing a bundle: the tool's side, here so that both sides of the format stand next to each other.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use crate::archive::{HEADER_BYTES, MAGIC, PADDING_BYTES, TRAILER_NAME};
use crate::error::{BundleError, Problem};
use crate::guest::GuestConfig;
use crate::manifest::{FileRecord, HostConfig, MANIFEST_MAGIC, MANIFEST_VERSION, Manifest, OLDEST_MANIFEST_VERSION};
use crate::oldest::OldManifest;
use crate::{Bundle, MANIFEST_NAME, crc32};

/// A regular file that its owner may read and write.
const MODE: u32 = 0o100_644;

/// Builds a bundle of `files` (name in the archive, content). What it returns has been parsed, so that a mistake is
/// found where the bundle is made and not where it is booted; it depends on nothing but the arguments.
pub fn build(host: HostConfig, guests: Vec<GuestConfig>, files: &[(&str, &[u8])]) -> Result<Vec<u8>, BundleError> {
    if let Some((name, _)) = files.iter().find(|(_, content)| u32::try_from(content.len()).is_err()) {
        return Err(BundleError { entry: name.to_string(), offset_bytes: 0, problem: Problem::FileTooLong });
    }
    let record = |&(name, content): &(&str, &[u8])| FileRecord {
        name: name.to_owned(),
        bytes: content.len() as u64,
        crc32: crc32(content),
    };
    let manifest = Manifest { host, guests, files: files.iter().map(record).collect() };
    let content_bytes: usize = files.iter().map(|(_, content)| content.len()).sum();
    let mut archive = Vec::with_capacity(content_bytes + (files.len() + 2) * 2 * HEADER_BYTES);
    append(&mut archive, MANIFEST_NAME, &encode_manifest(&manifest));
    for (name, content) in files {
        append(&mut archive, name, content);
    }
    append(&mut archive, TRAILER_NAME, &[]);
    Bundle::parse(&archive)?;
    Ok(archive)
}

/// Returns the content of the first entry.
pub(crate) fn encode_manifest(manifest: &Manifest) -> Vec<u8> {
    let mut content = MANIFEST_MAGIC.to_vec();
    match OldManifest::of(manifest) {
        Some(old) => {
            content.extend(OLDEST_MANIFEST_VERSION.to_le_bytes());
            // A vector takes everything.
            content.extend(postcard::to_allocvec(&old).unwrap_or_default());
        }
        None => {
            content.extend(MANIFEST_VERSION.to_le_bytes());
            // All kinds of values that a manifest has are encoded.
            let _ = cbor::append(manifest, &mut content);
        }
    }
    content.extend(crc32(&content).to_le_bytes());
    content
}

/// Appends one entry.
pub(crate) fn append(archive: &mut Vec<u8>, name: &str, content: &[u8]) {
    append_head(archive, name, content.len() as u32);
    archive.extend(content);
    pad(archive);
}

/// Appends what comes before the content of an entry. The archive's length is a multiple of what entries are padded to.
pub(crate) fn append_head(archive: &mut Vec<u8>, name: &str, content_bytes: u32) {
    let numbers = [0, MODE, 0, 0, 1, 0, content_bytes, 0, 0, 0, 0, name.len() as u32 + 1, 0];
    archive.extend(MAGIC);
    for number in numbers {
        archive.extend(format!("{number:08x}").bytes());
    }
    archive.extend(name.bytes());
    archive.push(0);
    pad(archive);
}

pub(crate) fn pad(archive: &mut Vec<u8>) {
    archive.resize(archive.len().next_multiple_of(PADDING_BYTES), 0);
}
