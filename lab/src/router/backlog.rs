// SPDX-License-Identifier: MIT OR Apache-2.0
//! The end of each guest's console output, for clients that connect later.

use std::collections::{BTreeMap, VecDeque};

use wire::{MAX_CONSOLE_BYTES, Stream};

use super::is_chosen;

/// Bytes kept for each guest: some screens.
const MAX_BYTES: usize = 16 * 1024;
/// Guests kept: more than a bundle has.
const MAX_GUESTS: usize = 64;

/// The last bytes of every console.
#[derive(Default)]
pub(super) struct Backlog {
    guests: BTreeMap<String, VecDeque<u8>>,
}

impl Backlog {
    /// Adds output of a guest.
    pub fn add(&mut self, name: &str, bytes: &[u8]) {
        if !self.guests.contains_key(name) && self.guests.len() >= MAX_GUESTS {
            return;
        }
        let kept = self.guests.entry(name.to_owned()).or_default();
        kept.extend(bytes);
        kept.drain(..kept.len().saturating_sub(MAX_BYTES));
    }

    /// Returns the kept bytes of these guests in messages; none: of all.
    pub fn chunks<'b>(&'b mut self, guests: &'b [String]) -> impl Iterator<Item = Stream<'b>> {
        self.guests.iter_mut().filter(|(name, _)| is_chosen(guests, name)).flat_map(|(name, kept)| {
            let chunks = kept.make_contiguous().chunks(MAX_CONSOLE_BYTES);
            chunks.map(|bytes| Stream::Console { name: name.as_str().into(), bytes: bytes.into() })
        })
    }
}
