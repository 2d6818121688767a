// SPDX-License-Identifier: MIT OR Apache-2.0
//! The frame by which switches outside learn that a station is here now: a request of the Reverse Address Resolution
//! Protocol (RFC 903) to all stations, as QEMU and VMware send it for a guest that has moved. No station has to answer
//! it.

use crate::header::{HEADER_BYTES, Header, Tag};
use crate::mac::Mac;

/// Bytes of the frame, without the checksum at its end: the fewest that a frame has (IEEE 802.3-2018, section 4A.4.2).
pub const ANNOUNCEMENT_BYTES: usize = 60;

const RARP: [u8; 2] = [0x80, 0x35];
/// Ethernet and IPv4, the lengths of their addresses, "request reverse" (RFC 826, RFC 903).
const REQUEST: [u8; 8] = [0, 1, 0x08, 0x00, 6, 4, 0, 3];

/// The announcement of a station.
pub fn announcement(mac: Mac) -> [u8; ANNOUNCEMENT_BYTES] {
    let mut frame = [0; ANNOUNCEMENT_BYTES];
    // The addresses of IPv4 between them are unknown: zero.
    let parts = [(0, &Mac::BROADCAST.0[..]), (6, &mac.0), (12, &RARP), (14, &REQUEST), (22, &mac.0), (32, &mac.0)];
    for (at, part) in parts {
        frame[at..at + part.len()].copy_from_slice(part);
    }
    frame
}

impl Header {
    /// The header of a station's announcement with this tag.
    pub const fn of_announcement(mac: Mac, tag: Option<Tag>) -> Self {
        let payload_bytes = ANNOUNCEMENT_BYTES - HEADER_BYTES;
        Self { destination: Mac::BROADCAST, source: mac, tag, payload_bytes }
    }
}
