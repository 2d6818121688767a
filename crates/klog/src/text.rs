// SPDX-License-Identifier: MIT OR Apache-2.0
//! A record's text on its way into the ring: formatted once, into a few words of stack.
//!
//! Most texts are short, and are made of pieces of a few bytes. So the first attempt has little room, which is cleared
//! by a few instructions, and pieces are copied without a call of memcpy; only a text that does not fit is formatted
//! again with room for all.

use core::fmt;

/// Bytes of text in a record at most; more is cut at a character and marked with `…`.
pub const MAXIMUM_TEXT_BYTES: usize = 240;
/// Bytes of a module's name at most; more is cut at a character.
pub const MAXIMUM_MODULE_BYTES: usize = 32;

/// Enough for most records, and with the rest of [`Text`] not so much that it would be cleared by a call of memset.
pub(crate) const USUAL_BYTES: usize = 96;
/// Enough for every record.
pub(crate) const LARGEST_BYTES: usize = MAXIMUM_MODULE_BYTES + MAXIMUM_TEXT_BYTES;

const MARK: &str = "…";

/// A module's name and the text behind it, in `BYTES` bytes.
pub(crate) struct Text<const BYTES: usize> {
    bytes: [u8; BYTES],
    used: usize,
    module_bytes: usize,
    cut: bool,
}

impl<const BYTES: usize> Text<BYTES> {
    /// Without module and text.
    #[inline(always)]
    pub(crate) fn new() -> Self {
        Self { bytes: [0; BYTES], used: 0, module_bytes: 0, cut: false }
    }

    /// Formats a record. Of the module's path the last part is kept. Text that does not fit is left out
    /// ([`Self::is_cut`]).
    #[inline(always)]
    pub(crate) fn format(&mut self, path: &str, arguments: fmt::Arguments<'_>) {
        let module = last_part(path.as_bytes());
        let module = if module.len() > MAXIMUM_MODULE_BYTES { shortened(module) } else { module };
        self.cut = !self.append(module);
        self.module_bytes = self.used;
        match arguments.as_str() {
            Some(whole) => drop(fmt::Write::write_str(self, whole)),
            // A `Display` that fails has written as much as it could; that much is logged.
            None => drop(fmt::write(self, arguments)),
        }
    }

    /// Returns whether something did not fit.
    #[inline(always)]
    pub(crate) fn is_cut(&self) -> bool {
        self.cut
    }

    /// Ends text that was cut with `…`.
    pub(crate) fn mark(&mut self) {
        let text = whole_characters(&self.bytes[self.module_bytes..self.used]);
        self.used = self.module_bytes + floor_boundary(text, self.limit() - self.module_bytes - MARK.len()).len();
        self.append(MARK.as_bytes());
        // The bytes behind the mark do not get into the ring.
        self.bytes[self.used..].fill(0);
    }

    pub(crate) fn module_bytes(&self) -> usize {
        self.module_bytes
    }

    pub(crate) fn text_bytes(&self) -> usize {
        self.used - self.module_bytes
    }

    /// All of it in words of little endian bytes, the last filled up with zeroes.
    #[inline(always)]
    pub(crate) fn words(&self) -> &[[u8; 8]] {
        self.bytes.as_chunks::<8>().0.get(..self.used.div_ceil(8)).unwrap_or_default()
    }

    /// Returns where the text ends at the latest.
    #[inline(always)]
    fn limit(&self) -> usize {
        if BYTES <= MAXIMUM_TEXT_BYTES { BYTES } else { BYTES.min(self.module_bytes + MAXIMUM_TEXT_BYTES) }
    }

    /// Appends a piece; `false` if it does not fit.
    #[inline(always)]
    fn append(&mut self, part: &[u8]) -> bool {
        let end = self.used + part.len();
        let Some(into) = self.bytes.get_mut(self.used..end) else { return false };
        copy(into, part);
        self.used = end;
        true
    }

    #[cold]
    fn append_what_fits(&mut self, part: &str) -> fmt::Result {
        if !self.cut {
            self.append(floor_boundary(part, self.limit() - self.used).as_bytes());
            self.cut = true;
        }
        Err(fmt::Error)
    }
}

impl<const BYTES: usize> fmt::Write for Text<BYTES> {
    #[inline]
    fn write_str(&mut self, part: &str) -> fmt::Result {
        // The smaller text is formatted again if anything is cut, so the bytes behind the cut do not matter there.
        let is_over = BYTES > MAXIMUM_TEXT_BYTES && (self.cut || self.used + part.len() > self.limit());
        if is_over || !self.append(part.as_bytes()) { self.append_what_fits(part) } else { Ok(()) }
    }
}

/// Copies a piece; short ones in two halves that may overlap.
#[inline(always)]
fn copy(into: &mut [u8], from: &[u8]) {
    if from.len() > 32 {
        into.copy_from_slice(from);
    } else if from.len() >= 16 {
        halves::<16>(into, from);
    } else if from.len() >= 8 {
        halves::<8>(into, from);
    } else if from.len() >= 4 {
        halves::<4>(into, from);
    } else if let (Some(first), Some(last)) = (from.first(), from.last()) {
        let middle = from.len() / 2;
        into[0] = *first;
        into[middle] = from[middle];
        into[from.len() - 1] = *last;
    }
}

/// Copies the first and the last `BYTES` bytes.
#[inline(always)]
fn halves<const BYTES: usize>(into: &mut [u8], from: &[u8]) {
    if let (Some(first), Some(last)) = (from.first_chunk::<BYTES>(), from.last_chunk::<BYTES>()) {
        into.first_chunk_mut::<BYTES>().into_iter().for_each(|to| *to = *first);
        into.last_chunk_mut::<BYTES>().into_iter().for_each(|to| *to = *last);
    }
}

/// Returns the last part of a module's path, behind the last colon. Every record's module is found so, eight bytes at a
/// time.
#[inline(always)]
fn last_part(path: &[u8]) -> &[u8] {
    const ONES: u64 = u64::MAX / 0xff;
    const LOWER: u64 = ONES * 0x7f;
    let mut end = path.len();
    while let Some(word) = path.get(..end).and_then(<[u8]>::last_chunk::<8>) {
        let difference = u64::from_le_bytes(*word) ^ (ONES * b':' as u64);
        // The highest bit of each byte that was a colon: adding carries into it from any lower bit that is set.
        let colons = !(((difference & LOWER) + LOWER) | difference | LOWER);
        if colons != 0 {
            return path.get(end - colons.leading_zeros() as usize / 8..).unwrap_or_default();
        }
        end -= 8;
    }
    let colon = path.iter().take(end).rposition(|byte| *byte == b':');
    path.get(colon.map_or(0, |colon| colon + 1)..).unwrap_or_default()
}

#[cold]
fn shortened(module: &[u8]) -> &[u8] {
    floor_boundary(whole_characters(module), MAXIMUM_MODULE_BYTES).as_bytes()
}

/// As much of `text` as fits in `bytes` bytes without cutting a character.
fn floor_boundary(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// The characters in `bytes` up to the first that is not one: only text went into the ring, so that is all of it.
pub(crate) fn whole_characters(bytes: &[u8]) -> &str {
    match core::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => core::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
    }
}
