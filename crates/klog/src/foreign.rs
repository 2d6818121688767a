// SPDX-License-Identifier: MIT OR Apache-2.0
//! A ring that another image has left: bytes that describe themselves, and are not trusted.

use core::fmt;

use crate::layout::*;
#[cfg(doc)]
use crate::reader::Cursor;
use crate::reader::{Memory, Reach};

/// A ring in memory that no CPU writes any more. Read it with [`Cursor::next`] and [`Reach::Everything`]; whatever its
/// words are, readers end, and the records that they return print as lines.
#[derive(Clone, Copy, Debug)]
pub struct Foreign<'a> {
    header: &'a [[u8; 8]; HEADER_WORDS],
    data: &'a [[u8; 8]],
}

/// The reason why memory is no ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForeignError {
    /// It does not begin as a ring does: no image has logged there, or it has been used for something else since.
    NoRing,
    /// A ring of another version.
    Version {
        /// The version found.
        version: u16,
    },
    /// Its header describes more than there is, or places outside.
    Damaged,
}

impl fmt::Display for ForeignError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRing => f.write_str("no log is there: the memory was never one, or has been used since"),
            Self::Version { version } => {
                write!(
                    f,
                    "the log is of version {version}, and this image reads {VERSION}: read it with the image that \
                     wrote it"
                )
            }
            Self::Damaged => f.write_str("the log's header is damaged: nothing in it can be found"),
        }
    }
}

impl core::error::Error for ForeignError {}

impl<'a> Foreign<'a> {
    /// Reach of its readers: no writer is left that would complete a record.
    pub const REACH: Reach = Reach::Everything;

    /// The ring that `bytes` begin with.
    ///
    /// # Errors
    /// [`ForeignError`]
    pub fn adopt(bytes: &'a [u8]) -> Result<Self, ForeignError> {
        let (words, _) = bytes.as_chunks::<8>();
        let (header, data) = words.split_first_chunk().ok_or(ForeignError::NoRing)?;
        let ring = Self { header, data };
        if ring.header(HEADER_MAGIC) != MAGIC {
            return Err(ForeignError::NoRing);
        }
        let identity = ring.header(HEADER_IDENTITY);
        if identity & 0xffff != VERSION {
            return Err(ForeignError::Version { version: identity as u16 });
        }
        let data_words = usize::try_from(ring.header(HEADER_DATA_WORDS)).unwrap_or(usize::MAX);
        let data = data.get(..data_words).ok_or(ForeignError::Damaged)?;
        let ring = Self { header, data };
        if ring.is_sound(identity) { Ok(ring) } else { Err(ForeignError::Damaged) }
    }

    /// The number that the ring's next record would have got.
    pub fn written(&self) -> u64 {
        Place::from_word(self.header(HEADER_HEAD)).sequence
    }

    fn is_sound(&self, identity: u64) -> bool {
        let place = |index| Place::from_word(self.header(index));
        let (tail, seen, head) = (place(HEADER_TAIL), place(HEADER_SEEN), place(HEADER_HEAD));
        identity >> 16 & 0xffff == HEADER_WORDS as u64
            && (MINIMUM_RING_WORDS..=MAXIMUM_RING_WORDS).contains(&(HEADER_WORDS + self.data.len()))
            && [tail, seen, head].iter().all(|place| place.index < self.data.len())
            && tail.sequence <= seen.sequence
            && seen.sequence <= head.sequence
    }
}

impl Memory for Foreign<'_> {
    fn header(&self, index: usize) -> u64 {
        u64::from_le_bytes(self.header[index])
    }

    fn data(&self, index: usize) -> u64 {
        u64::from_le_bytes(self.data[index])
    }

    fn data_words(&self) -> usize {
        self.data.len()
    }
}
