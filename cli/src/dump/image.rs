// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest's memory in a file, found by the guest's physical addresses.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt as _;

use wire::MemoryRange;

/// One piece of memory and where it lies in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    pub gpa: u64,
    pub bytes: u64,
    pub offset: u64,
}

/// The file with all pieces.
#[derive(Debug)]
pub struct Image {
    pub file: File,
    pub pieces: Vec<Piece>,
}

impl Image {
    /// Returns an image of these ranges, all zero, the first at `offset`.
    pub fn new(file: File, mut offset: u64, ranges: &[MemoryRange]) -> io::Result<Self> {
        let too_large = || io::Error::new(ErrorKind::FileTooLarge, "more memory than a file can hold");
        let mut pieces = Vec::new();
        for &MemoryRange { gpa, bytes } in ranges {
            gpa.checked_add(bytes).ok_or_else(too_large)?;
            pieces.push(Piece { gpa, bytes, offset });
            offset = offset.checked_add(bytes).ok_or_else(too_large)?;
        }
        file.set_len(offset)?;
        Ok(Self { file, pieces })
    }

    /// Returns where `bytes` bytes at `gpa` lie in the file, if they are all in one piece.
    pub fn offset_of(&self, gpa: u64, bytes: u64) -> Option<u64> {
        let piece = self.pieces.iter().find(|piece| gpa >= piece.gpa && gpa - piece.gpa < piece.bytes)?;
        let within = gpa - piece.gpa;
        (bytes <= piece.bytes - within).then_some(piece.offset + within)
    }

    /// Writes memory.
    pub fn write(&self, gpa: u64, bytes: &[u8]) -> io::Result<()> {
        let outside = || io::Error::new(ErrorKind::InvalidData, "the host sent memory that the guest does not have");
        let offset = self.offset_of(gpa, bytes.len() as u64).ok_or_else(outside)?;
        self.file.write_all_at(bytes, offset)
    }

    /// Reads a page table: 512 entries. `None` where there is no memory.
    pub fn table(&self, gpa: u64) -> Option<[u64; 512]> {
        let mut bytes = [0; 4096];
        self.file.read_exact_at(&mut bytes, self.offset_of(gpa, 4096)?).ok()?;
        let (words, _) = bytes.as_chunks::<8>();
        let mut table = [0; 512];
        table.iter_mut().zip(words).for_each(|(entry, word)| *entry = u64::from_le_bytes(*word));
        Some(table)
    }
}
