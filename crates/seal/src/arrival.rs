// SPDX-License-Identifier: MIT OR Apache-2.0
//! A file that arrives in pieces, over a line that may lose or repeat some.
//!
//! The sender names length and SHA-256 first. Pieces are taken in order; one that is there already, or that lies beyond
//! the next, is passed over, and the sender learns where to go on: so it may send several before it hears of the
//! first, and a client that comes back after a break finds what is there. The digest is computed as the bytes come,
//! never over all of them at once.

use core::fmt;

use crate::layout::SEAL_BYTES;
use crate::sha256::{Compress, Digest, Sha256};
use crate::unpack::Unpacker;

/// A sender's statement about a file before it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Announced<Kind> {
    /// Its kind.
    pub kind: Kind,
    /// Its length.
    pub bytes: u64,
    /// Its SHA-256.
    pub digest: Digest,
}

/// A file that is arriving, or has arrived.
#[derive(Debug)]
pub struct Arrival<E, Kind> {
    announced: Announced<Kind>,
    /// The digest of the bytes that have arrived.
    hash: Option<Sha256<E>>,
    /// Unpacks it, once a packed piece has come.
    unpacker: Option<Unpacker>,
    /// The digest of all but the last [`SEAL_BYTES`], once that has arrived.
    content: Option<Digest>,
    /// Time of the last piece, in the caller's unit of time.
    touched: u64,
    patience: u64,
}

/// A piece that is packed, as [`Unpacker`] unpacks it.
#[derive(Clone, Copy, Debug)]
pub struct Packed<'a> {
    /// Its place in the file.
    pub offset: u64,
    /// Its length, unpacked.
    pub bytes: u64,
    /// It begins a stream; else it goes on with that of the packed piece before.
    pub begins: bool,
    /// Its part of the stream.
    pub packed: &'a [u8],
}

/// The reason why a file cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrivalError {
    /// The next piece goes beyond the announced end.
    TooLong,
    /// All of it has come, and it is not what was announced.
    Damaged,
    /// A packed piece does not unpack to what it states, or there is no memory for the window of its stream.
    Corrupt,
}

impl fmt::Display for ArrivalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLong => "the file goes on behind the end that was announced",
            Self::Damaged => "the file that has arrived is not the one that was announced: its SHA-256 is another",
            Self::Corrupt => {
                "a packed piece does not unpack to the length that it states, or there is no memory to unpack it"
            }
        })
    }
}

impl core::error::Error for ArrivalError {}

impl<E: Compress + Clone, Kind: Copy + PartialEq> Arrival<E, Kind> {
    /// Begins a file of which nothing has arrived. Once no piece has come for as long as `patience`, it counts as
    /// abandoned.
    pub fn new(engine: E, announced: Announced<Kind>, now: u64, patience: u64) -> Self {
        Self { announced, hash: Some(Sha256::new(engine)), unpacker: None, content: None, touched: now, patience }
    }

    /// Returns the sender's statement about it.
    pub fn announced(&self) -> Announced<Kind> {
        self.announced
    }

    /// Returns the number of bytes that have arrived.
    pub fn next_offset(&self) -> u64 {
        self.hash.as_ref().map_or(self.announced.bytes, Sha256::bytes)
    }

    /// Returns whether all of it has arrived, as it was announced.
    pub fn is_whole(&self) -> bool {
        self.hash.is_none()
    }

    /// Returns the SHA-256 of all but the file's last [`SEAL_BYTES`], where a seal may be, once these bytes have
    /// arrived: they need not be hashed again to judge the seal.
    pub fn content_digest(&self) -> Option<&Digest> {
        self.content.as_ref()
    }

    /// Notes that a client still needs it.
    pub fn touch(&mut self, now: u64) {
        self.touched = now;
    }

    /// Returns when it counts as abandoned unless something comes.
    pub fn abandoned_at(&self) -> u64 {
        self.touched.saturating_add(self.patience)
    }

    /// Takes the piece at `offset` into `memory`, which has the announced length, if it is the next one. Returns where
    /// to go on.
    ///
    /// # Errors
    /// The file is not what was announced: give it up.
    pub fn take(&mut self, offset: u64, piece: &[u8], memory: &mut [u8], now: u64) -> Result<u64, ArrivalError> {
        match self.next_piece(offset, piece.len() as u64, memory, now)? {
            None => Ok(self.next_offset()),
            Some((known, next)) => {
                let place = known.get_mut(next..).ok_or(ArrivalError::TooLong)?;
                place.copy_from_slice(piece);
                self.note(place, next as u64)
            }
        }
    }

    /// Takes a packed piece as [`Arrival::take`] does.
    ///
    /// # Errors
    /// [`ArrivalError`], also if it does not unpack to the length that it states.
    pub fn take_packed(&mut self, piece: Packed<'_>, memory: &mut [u8], now: u64) -> Result<u64, ArrivalError> {
        match self.next_piece(piece.offset, piece.bytes, memory, now)? {
            None => Ok(self.next_offset()),
            Some((known, next)) => {
                let place = known.get_mut(next..).ok_or(ArrivalError::TooLong)?;
                if piece.begins {
                    self.unpacker = None;
                }
                let unpacker = self.unpacker.get_or_insert_default();
                unpacker.unpack(piece.packed, place).map_err(|_| ArrivalError::Corrupt)?;
                self.note(place, next as u64)
            }
        }
    }

    /// Returns the memory up to the end of the piece at `offset`, and where the piece begins; `None` unless it is the
    /// next one.
    fn next_piece<'m>(
        &mut self,
        offset: u64,
        bytes: u64,
        memory: &'m mut [u8],
        now: u64,
    ) -> Result<Option<(&'m mut [u8], usize)>, ArrivalError> {
        self.touch(now);
        let next = self.next_offset();
        if self.hash.is_none() || offset != next || bytes == 0 {
            return Ok(None);
        }
        let end = next.checked_add(bytes).filter(|end| *end <= self.announced.bytes).ok_or(ArrivalError::TooLong)?;
        let known = memory.get_mut(..end as usize).ok_or(ArrivalError::TooLong)?;
        Ok(Some((known, next as usize)))
    }

    /// Notes a piece that is in its place; returns the offset of the next one.
    fn note(&mut self, piece: &[u8], next: u64) -> Result<u64, ArrivalError> {
        let end = next + piece.len() as u64;
        let Some(hash) = self.hash.as_mut() else { return Ok(next) };
        let content_end = self.announced.bytes.saturating_sub(SEAL_BYTES as u64);
        match content_end.checked_sub(next).filter(|_| content_end <= end) {
            Some(before) => {
                let (content, rest) = piece.split_at((before as usize).min(piece.len()));
                hash.update(content);
                self.content = Some(hash.clone().finish());
                hash.update(rest);
            }
            None => hash.update(piece),
        }
        if end == self.announced.bytes {
            self.finish()?;
        }
        Ok(end)
    }

    fn finish(&mut self) -> Result<(), ArrivalError> {
        self.unpacker = None;
        let digest = self.hash.take().map(Sha256::finish);
        if digest == Some(self.announced.digest) { Ok(()) } else { Err(ArrivalError::Damaged) }
    }
}
