// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest in a file: saved by `baton vm save`, to go on by `baton vm restore`.
//!
//! ```text
//! 0        a line of text: format and version
//!          a line of JSON: the guest, its configuration, and place, length and SHA-256 of each part
//! 64 KiB   the state: blocks of the hand-over, one behind the other
//!          the memory by rising address; what is zero is a hole in the file
//! ```

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use bundle::{HostConfig, Manifest};
use seal::{Portable, Sha256};
use serde::{Deserialize, Serialize};

#[cfg(test)]
mod tests;

/// The first line of a file.
const FORMAT: &str = "Baton saved guest, format 1\n";
/// Bytes before the state.
pub const HEAD_BYTES: u64 = 64 << 10;
/// Memory begins at a multiple of this.
const ALIGNMENT: u64 = 4096;
/// Bytes that are hashed at a time.
const PIECE_BYTES: usize = 1 << 20;

/// The description of a saved guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The guest's name.
    pub guest: String,
    /// The hypervisor that saved it.
    pub saved_by: String,
    /// A manifest with this guest alone, in hexadecimal digits.
    pub configuration: String,
    /// The state.
    pub state: Part,
    /// The pieces of memory, by rising address.
    pub memory: Vec<Part>,
}

/// A part of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Where it begins in the file.
    pub offset: u64,
    /// Its length.
    pub bytes: u64,
    /// The digits of its SHA-256: the name that the host has for it.
    pub sha256: String,
}

impl Part {
    /// Describes the part at this place of a file.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn of(file: &File, offset: u64, bytes: u64) -> io::Result<Self> {
        let (mut hash, mut piece, mut done) = (Sha256::new(Portable), vec![0; PIECE_BYTES], 0);
        while done < bytes {
            let count = (bytes - done).min(PIECE_BYTES as u64);
            file.read_exact_at(&mut piece[..count as usize], offset + done)?;
            hash.update(&piece[..count as usize]);
            done += count;
        }
        Ok(Self { offset, bytes, sha256: hex(&hash.finish()) })
    }

    /// Reads the part.
    ///
    /// # Errors
    /// It cannot be read, or is damaged.
    pub fn read(&self, file: &File) -> Result<Vec<u8>> {
        ensure!(self.offset.saturating_add(self.bytes) <= file.metadata()?.len(), "the file is cut off");
        let mut bytes = vec![0; usize::try_from(self.bytes)?];
        file.read_exact_at(&mut bytes, self.offset)?;
        let mut hash = Sha256::new(Portable);
        hash.update(&bytes);
        let found = hex(&hash.finish());
        ensure!(
            found == self.sha256,
            "the {} bytes at {} are damaged: their SHA-256 is {found}",
            self.bytes,
            self.offset
        );
        Ok(bytes)
    }
}

impl Head {
    /// Describes the guest of this name in a host's configuration.
    ///
    /// # Errors
    /// The host has no such guest.
    pub fn new(name: &str, saved_by: String, host: &Manifest, state: Part, memory: Vec<Part>) -> Result<Self> {
        let guest = host.guests.iter().find(|guest| guest.name == name).cloned();
        let guests = vec![guest.with_context(|| format!("the host's configuration has no guest {name:?}"))?];
        let networks = host.host.networks.clone();
        let alone = Manifest { host: HostConfig { networks, ..HostConfig::EMPTY }, guests, ..Manifest::default() };
        Ok(Self { guest: name.to_owned(), saved_by, configuration: hex(&alone.to_content()), state, memory })
    }

    /// Returns a manifest with this guest alone, by another name if one is given.
    ///
    /// # Errors
    /// The file's is none.
    pub fn configuration(&self, name: &str) -> Result<Vec<u8>> {
        let content = unhex(&self.configuration).ok_or_else(|| anyhow!("the configuration is damaged"))?;
        let mut manifest =
            Manifest::addition_from_content(&content).map_err(|problem| anyhow!("the configuration: {problem}"))?;
        manifest.guests.iter_mut().for_each(|guest| name.clone_into(&mut guest.name));
        Ok(manifest.to_content())
    }

    /// Writes the head of a file.
    ///
    /// # Errors
    /// It is too long, or the file cannot be written.
    pub fn write(&self, file: &File) -> Result<()> {
        let text = format!("{FORMAT}{}\n", serde_json::to_string(self)?);
        ensure!(text.len() as u64 <= HEAD_BYTES, "the guest's configuration is too long for the file");
        Ok(file.write_all_at(text.as_bytes(), 0)?)
    }

    /// Reads the head of a file.
    ///
    /// # Errors
    /// It is no saved guest, or of another version.
    pub fn read(file: &File, path: &Path) -> Result<Self> {
        let mut head = vec![0; HEAD_BYTES.min(file.metadata()?.len()) as usize];
        file.read_exact_at(&mut head, 0)?;
        let name = path.display();
        let Some(rest) = head.strip_prefix(FORMAT.as_bytes()) else {
            let (known, _) = FORMAT.split_at(FORMAT.len() - 2);
            match head.starts_with(known.as_bytes()) {
                true => bail!("{name} is a saved guest of another format: use the tool of the release that saved it"),
                false => bail!("{name} is no saved guest: `baton vm save` writes such a file"),
            }
        };
        let line = rest.split(|&byte| byte == b'\n').next().unwrap_or_default();
        serde_json::from_slice(line).with_context(|| format!("{name}: its description is damaged"))
    }
}

/// Returns where memory begins behind a state of this length.
pub fn memory_offset(state_bytes: u64) -> u64 {
    HEAD_BYTES + state_bytes.next_multiple_of(ALIGNMENT)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(digits: &str) -> Option<Vec<u8>> {
    let digits = digits.as_bytes();
    let digit = |at: usize| char::from(*digits.get(at)?).to_digit(16);
    let byte = |at| Some((digit(at)? << 4 | digit(at + 1)?) as u8);
    (0..digits.len()).step_by(2).map(byte).collect()
}
