// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lists that may be longer than a frame are sent in pages: the sender takes as many items as fit, the receiver asks
//! again from where the page ended.

use alloc::vec::Vec;

use serde::Serialize;

use crate::MAX_FRAME_BYTES;
use cbor::{Full, Sink, Writer};

/// Bytes that a page's items may take together. The rest of the frame is for what stands around them (less than 64
/// bytes: version, numbers, checksum) and for stuffing (one byte per 254, delimiter).
pub const PAGE_BYTES: usize = MAX_FRAME_BYTES - 128;

/// Returns the first items that fit a frame together, at most `limit`.
///
/// An item that fits no frame at all would be asked for again and again; it is left out, and the ones behind it come.
pub fn fill<T: Serialize>(items: impl IntoIterator<Item = T>, limit: usize) -> Vec<T> {
    let mut page = Vec::new();
    let mut left_bytes = PAGE_BYTES;
    for item in items {
        let bytes = encoded_bytes(&item);
        if bytes > PAGE_BYTES {
            continue;
        }
        if page.len() == limit || bytes > left_bytes {
            break;
        }
        left_bytes -= bytes;
        page.push(item);
    }
    page
}

/// Returns the number of bytes of an item before stuffing; [`usize::MAX`] for one that cannot be encoded.
fn encoded_bytes<T: Serialize>(item: &T) -> usize {
    let mut count = Count(0);
    item.serialize(&mut Writer::new(&mut count)).map_or(usize::MAX, |()| count.0)
}

struct Count(usize);

impl Sink for Count {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Full> {
        self.0 += bytes.len();
        Ok(())
    }
}
