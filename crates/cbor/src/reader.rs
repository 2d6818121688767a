// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bytes of untrusted origin, as values are read from them.

use core::fmt::{self, Display};

use minicbor::data::Type;
use minicbor::{Decoder, decode};
use serde::de::{self, DeserializeOwned, DeserializeSeed, SeqAccess, Visitor};

use super::raw::Raw;

/// The reason why bytes are no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// They are not encoded so.
    Malformed,
    /// They hold a variant that this side does not know: the writer is newer.
    Unknown,
}

impl Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => "no value is encoded so",
            Self::Unknown => "it is of a newer release",
        })
    }
}

impl core::error::Error for Error {}

impl de::Error for Error {
    fn custom<T: Display>(_: T) -> Self {
        Self::Malformed
    }
}

impl From<decode::Error> for Error {
    fn from(_: decode::Error) -> Self {
        Self::Malformed
    }
}

/// Reads values from bytes of untrusted origin.
pub struct Reader<'b>(pub(super) Decoder<'b>);

impl<'b> Reader<'b> {
    /// A reader of these bytes.
    pub fn new(bytes: &'b [u8]) -> Self {
        Self(Decoder::new(bytes))
    }

    /// Reads the head of a list; returns its length.
    ///
    /// # Errors
    /// There is no list, or one of unknown length.
    #[inline(never)]
    pub fn array(&mut self) -> Result<u64, Error> {
        self.0.array()?.ok_or(Error::Malformed)
    }

    /// Reads a number.
    ///
    /// # Errors
    /// There is none, or a larger one.
    pub fn u32(&mut self) -> Result<u32, Error> {
        Ok(self.0.u32()?)
    }

    /// Reads a number.
    ///
    /// # Errors
    /// There is none, or a larger one.
    pub fn u64(&mut self) -> Result<u64, Error> {
        Ok(self.0.u64()?)
    }

    /// Reads a value of whatever type.
    ///
    /// # Errors
    /// There is none, or part of one.
    pub fn raw(&mut self) -> Result<Raw, Error> {
        let start = self.0.position();
        self.skip(1)?;
        Ok(Raw(self.0.input().get(start..self.0.position()).ok_or(Error::Malformed)?.to_vec()))
    }

    /// Returns whether a list is next.
    pub fn is_at_array(&self) -> bool {
        self.0.datatype().is_ok_and(|kind| kind == Type::Array)
    }

    /// Returns whether all bytes have been read.
    pub fn is_at_end(&self) -> bool {
        self.left_bytes() == 0
    }

    fn left_bytes(&self) -> usize {
        self.0.input().len().saturating_sub(self.0.position())
    }

    /// Reads a list, and passes over the fields that the visitor does not know.
    pub(super) fn list<V: Visitor<'b>>(&mut self, visitor: V) -> Result<V::Value, Error> {
        let mut elements = Elements { left: self.array()?, reader: self };
        let value = visitor.visit_seq(&mut elements)?;
        let left = elements.left;
        self.skip(left)?;
        Ok(value)
    }

    /// Passes over so many values.
    ///
    /// # Errors
    /// There are fewer.
    // Once in the image, as the other parts that do not depend on a type.
    #[inline(never)]
    pub fn skip(&mut self, values: u64) -> Result<(), Error> {
        (0..values).try_for_each(|_| self.0.skip())?;
        Ok(())
    }
}

/// Reads a value that takes all of these bytes.
///
/// # Errors
/// They are no such value.
pub fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
    let mut reader = Reader::new(bytes);
    let value = T::deserialize(&mut reader)?;
    if reader.is_at_end() { Ok(value) } else { Err(Error::Malformed) }
}

/// The elements of a list.
struct Elements<'r, 'b> {
    reader: &'r mut Reader<'b>,
    left: u64,
}

impl<'b> SeqAccess<'b> for &mut Elements<'_, 'b> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'b>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        seed.deserialize(&mut *self.reader).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        // The length is anything; each element has a byte at least.
        usize::try_from(self.left).ok().map(|left| left.min(self.reader.left_bytes()))
    }
}
