// SPDX-License-Identifier: MIT OR Apache-2.0
//! Archives and manifests with the right frame and arbitrary content.

use crc::{CRC_32_ISO_HDLC, Crc};

const CHECKSUM: Crc<u32> = Crc::<u32>::new(&CRC_32_ISO_HDLC);

/// Appends an entry of the kind cpio calls newc.
pub fn append(archive: &mut Vec<u8>, name: &str, content: &[u8]) {
    let mut numbers = [0; 13];
    (numbers[6], numbers[11]) = (content.len(), name.len() + 1);
    archive.extend_from_slice(b"070701");
    numbers.iter().for_each(|number| archive.extend_from_slice(format!("{number:08x}").as_bytes()));
    archive.extend_from_slice(name.as_bytes());
    archive.push(0);
    pad(archive);
    archive.extend_from_slice(content);
    pad(archive);
}

/// An archive with a manifest and two files.
pub fn with_manifest(manifest: &[u8]) -> Vec<u8> {
    let mut archive = Vec::new();
    append(&mut archive, bundle::MANIFEST_NAME, manifest);
    append(&mut archive, "k", b"kernel");
    append(&mut archive, "i", b"initrd");
    append(&mut archive, "TRAILER!!!", b"");
    archive
}

/// A manifest of this version with this in it, its checksum right.
pub fn manifest(version: u16, encoded: &[u8]) -> Vec<u8> {
    let mut manifest = bundle::MANIFEST_MAGIC.to_vec();
    manifest.extend_from_slice(&version.to_le_bytes());
    manifest.extend_from_slice(encoded);
    manifest.extend_from_slice(&CHECKSUM.checksum(&manifest).to_le_bytes());
    manifest
}

fn pad(archive: &mut Vec<u8>) {
    archive.resize(archive.len().next_multiple_of(4), 0);
}
