// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writing a bundle a piece at a time, into memory of its length: on a host with guests that run meanwhile.

use alloc::string::String;
use alloc::vec::Vec;
use core::mem;

use crate::MANIFEST_NAME;
use crate::archive::TRAILER_NAME;
use crate::manifest::Manifest;
use crate::write::{append, append_head, pad};

/// The writer of a bundle.
pub struct Composer {
    /// The parts that are left to write, the next one last.
    left: Vec<Part>,
    /// Bytes of the next one that are written.
    written: usize,
    offset: usize,
    bytes: usize,
}

/// A part of the archive.
enum Part {
    /// Headers and padding.
    Text(Vec<u8>),
    /// The content of a file, and its length in bytes.
    File(String, usize),
}

/// A file is not there, or not as the manifest states it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileGone(pub String);

impl Part {
    fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::File(_, bytes) => *bytes,
        }
    }
}

impl Composer {
    /// Returns a writer of this manifest, and of the files that it lists.
    pub fn new(manifest: &Manifest) -> Self {
        let (mut parts, mut text) = (Vec::new(), Vec::new());
        append(&mut text, MANIFEST_NAME, &manifest.to_content());
        for file in &manifest.files {
            append_head(&mut text, &file.name, file.bytes as u32);
            // Every part but a file begins where padding does.
            parts.push(Part::Text(mem::take(&mut text)));
            parts.push(Part::File(file.name.clone(), file.bytes as usize));
            text.resize(file.bytes as usize % 4, 0);
            pad(&mut text);
            text.drain(..file.bytes as usize % 4);
            parts.push(Part::Text(mem::take(&mut text)));
        }
        append(&mut text, TRAILER_NAME, &[]);
        parts.push(Part::Text(text));
        let bytes = parts.iter().map(Part::bytes).sum();
        parts.reverse();
        Self { left: parts, written: 0, offset: 0, bytes }
    }

    /// Returns the bundle's length in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Writes at most `most` bytes; returns whether all of the bundle is there. `file` finds a file's bytes.
    ///
    /// # Errors
    /// A file is not there, or `into` is too short for it.
    pub fn step<'a>(
        &mut self,
        into: &mut [u8],
        most: usize,
        file: impl Fn(&str) -> Option<&'a [u8]>,
    ) -> Result<bool, FileGone> {
        let mut budget = most;
        while budget > 0
            && let Some(part) = self.left.last()
        {
            let count = budget.min(part.bytes() - self.written);
            let gone = || match part {
                Part::Text(_) => FileGone(MANIFEST_NAME.into()),
                Part::File(name, _) => FileGone(name.clone()),
            };
            let content = match part {
                Part::Text(text) => text.as_slice(),
                Part::File(name, bytes) => file(name).filter(|found| found.len() == *bytes).ok_or_else(gone)?,
            };
            let from = content.get(self.written..self.written + count).ok_or_else(gone)?;
            into.get_mut(self.offset..self.offset + count).ok_or_else(gone)?.copy_from_slice(from);
            (self.written, self.offset, budget) = (self.written + count, self.offset + count, budget - count);
            if self.written == part.bytes() {
                self.written = 0;
                self.left.pop();
            }
        }
        Ok(self.left.is_empty())
    }
}
