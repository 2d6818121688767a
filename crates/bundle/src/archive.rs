// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cpio format called "newc": a chain of headers, names and contents, each padded to four bytes.
//!
//! A header is 110 characters: the magic `070701` and 13 numbers of eight hexadecimal digits each, of which only two
//! matter here (cpio(5): the seventh is the content's length, the twelfth the name's length with its terminating zero).

use alloc::string::{String, ToString};
use core::str;

use crate::error::{BundleError, HeaderField, Problem};
use crate::limits;

/// Begins every header.
pub(crate) const MAGIC: &[u8; 6] = b"070701";
/// Bytes of a header.
pub(crate) const HEADER_BYTES: usize = 110;
/// The name of the entry that ends the archive.
pub(crate) const TRAILER_NAME: &str = "TRAILER!!!";
/// Names and contents are padded to a multiple of this many bytes.
pub(crate) const PADDING_BYTES: usize = 4;

/// Digits of one number.
const NUMBER_BYTES: usize = 8;
/// The content's length, among the numbers.
const FILE_SIZE_INDEX: usize = 6;
/// The name's length, among the numbers.
const NAME_SIZE_INDEX: usize = 11;

/// One entry of the archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    pub name: &'a str,
    pub content: &'a [u8],
    /// Offset of its header in bytes.
    pub offset_bytes: usize,
}

/// Walks the entries of an archive up to its trailer.
pub(crate) struct Entries<'a> {
    archive: &'a [u8],
    offset_bytes: usize,
}

impl<'a> Entries<'a> {
    pub fn new(archive: &'a [u8]) -> Self {
        Self { archive, offset_bytes: 0 }
    }

    /// Returns the next entry; `None` at the trailer.
    pub fn next(&mut self) -> Result<Option<Entry<'a>>, BundleError> {
        let start = self.offset_bytes;
        let nameless = |problem| BundleError { entry: String::new(), offset_bytes: start, problem };
        let rest = self.archive.get(start..).unwrap_or_default();
        if rest.iter().zip(MAGIC).any(|(byte, expected)| byte != expected) {
            return Err(nameless(Problem::NoArchive));
        }
        let header = self.take(HEADER_BYTES).map_err(nameless)?;
        let file_size = number(header, FILE_SIZE_INDEX, HeaderField::FileSize).map_err(nameless)?;
        let name_size = number(header, NAME_SIZE_INDEX, HeaderField::NameSize).map_err(nameless)?;
        if !(2..=limits::FILE_NAME_BYTES + 1).contains(&name_size) {
            return Err(nameless(Problem::BadName));
        }
        let name = name(self.take_padded(name_size).map_err(nameless)?).map_err(nameless)?;
        if name == TRAILER_NAME {
            return Ok(None);
        }
        let named = |problem| BundleError { entry: name.to_string(), offset_bytes: start, problem };
        let content = self.take_padded(file_size).map_err(named)?;
        Ok(Some(Entry { name, content, offset_bytes: start }))
    }

    fn take(&mut self, bytes: usize) -> Result<&'a [u8], Problem> {
        let rest = self.archive.get(self.offset_bytes..).unwrap_or_default();
        let Some(taken) = rest.get(..bytes) else {
            return Err(Problem::Truncated { missing_bytes: bytes - rest.len() });
        };
        self.offset_bytes += bytes;
        Ok(taken)
    }

    /// Takes `bytes` and skips what pads them. Padding counts from the start of the archive.
    fn take_padded(&mut self, bytes: usize) -> Result<&'a [u8], Problem> {
        let taken = self.take(bytes)?;
        let padding = self.offset_bytes.next_multiple_of(PADDING_BYTES) - self.offset_bytes;
        self.take(padding)?;
        Ok(taken)
    }
}

/// Returns the number at `index` of a header.
fn number(header: &[u8], index: usize, field: HeaderField) -> Result<usize, Problem> {
    let start = MAGIC.len() + index * NUMBER_BYTES;
    let digits = header.get(start..start + NUMBER_BYTES).unwrap_or_default();
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit);
    let text = str::from_utf8(digits).ok().filter(|_| is_number);
    text.and_then(|text| usize::from_str_radix(text, 16).ok()).ok_or(Problem::BadNumber(field))
}

/// Returns the text before the zero that ends a name.
fn name(bytes: &[u8]) -> Result<&str, Problem> {
    let Some((0, text)) = bytes.split_last() else { return Err(Problem::BadName) };
    if text.contains(&0) {
        return Err(Problem::BadName);
    }
    str::from_utf8(text).map_err(|_| Problem::BadName)
}
