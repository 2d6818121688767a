// SPDX-License-Identifier: MIT OR Apache-2.0
//! The header before each frame (section 5.1.6): what the sender has left to the device.

use switch::Reason;

use super::feature;

/// Bytes of the header, with the number of buffers.
pub(super) const BYTES: usize = 12;
/// Where the number of buffers is in it.
pub(super) const BUFFERS_AT: usize = 10;

const NEEDS_CHECKSUM: u8 = 1;
const TCP4: u8 = 1;
const TCP6: u8 = 4;
/// The segments have the bits of explicit congestion notification.
const ECN: u8 = 0x80;
/// The checksum's bytes in the frame.
const CHECKSUM_BYTES: usize = 2;

/// A checksum that is not in the frame yet: the sum of the bytes from `start` to the frame's end is to be `offset`
/// bytes behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Checksum {
    pub start: u16,
    pub offset: u16,
}

impl Checksum {
    /// Where it is in the frame.
    pub fn at(self) -> usize {
        usize::from(self.start) + usize::from(self.offset)
    }
}

/// A TCP packet that is to be cut into segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segmentation {
    pub is_ipv6: bool,
    pub has_ecn: bool,
    /// Bytes of the headers before the data, as the sender states them.
    pub header_bytes: u16,
    /// The most bytes of data in a segment.
    pub segment_bytes: u16,
}

/// The work that the sender has left to the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Offload {
    pub checksum: Option<Checksum>,
    pub segmentation: Option<Segmentation>,
}

impl Offload {
    /// Reads the header of a frame from a driver that has accepted these features. The frame has this many bytes, of
    /// which the first ones are Ethernet's header.
    ///
    /// # Errors
    /// [`Reason::Malformed`] if it asks for a feature that the driver has not negotiated, or makes no sense.
    pub fn parse(
        bytes: &[u8; BYTES],
        features: u64,
        (ethernet_bytes, frame_bytes): (usize, usize),
    ) -> Result<Self, Reason> {
        let [flags, kind, header_low, header_high, segment_low, segment_high, start_low, start_high, low, high, ..] =
            *bytes;
        let has = |feature: u64| features & feature != 0;
        let mut offload = Self::default();
        if flags & NEEDS_CHECKSUM != 0 {
            let checksum = Checksum {
                start: u16::from_le_bytes([start_low, start_high]),
                offset: u16::from_le_bytes([low, high]),
            };
            let is_within =
                usize::from(checksum.start) >= ethernet_bytes && checksum.at() + CHECKSUM_BYTES <= frame_bytes;
            if !has(feature::CSUM) || !is_within {
                return Err(Reason::Malformed);
            }
            offload.checksum = Some(checksum);
        }
        let is_offered = match kind & !ECN {
            0 => return if kind == 0 { Ok(offload) } else { Err(Reason::Malformed) },
            TCP4 => has(feature::HOST_TSO4),
            TCP6 => has(feature::HOST_TSO6),
            _ => false,
        };
        let segmentation = Segmentation {
            is_ipv6: kind & !ECN == TCP6,
            has_ecn: kind & ECN != 0,
            header_bytes: u16::from_le_bytes([header_low, header_high]),
            segment_bytes: u16::from_le_bytes([segment_low, segment_high]),
        };
        let is_possible = segmentation.segment_bytes > 0
            && usize::from(segmentation.header_bytes) <= frame_bytes
            && (!segmentation.has_ecn || has(feature::HOST_ECN));
        // Each segment has a checksum of its own (5.1.6.2.1).
        if !is_offered || !is_possible || offload.checksum.is_none() {
            return Err(Reason::Malformed);
        }
        offload.segmentation = Some(segmentation);
        Ok(offload)
    }

    /// Returns whether a driver that has accepted these features segments a frame by itself.
    pub fn is_segmented_by(&self, features: u64) -> bool {
        self.segmentation.is_none_or(|segmentation| {
            let kind = if segmentation.is_ipv6 { feature::GUEST_TSO6 } else { feature::GUEST_TSO4 };
            let all = if segmentation.has_ecn { kind | feature::GUEST_ECN } else { kind };
            features & all == all
        })
    }

    /// The header for a receiver: each place in its frame is so many bytes further.
    pub fn bytes(&self, further: i32) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        let moved = |place: u16| (i32::from(place) + further).clamp(0, u16::MAX.into()) as u16;
        if let Some(checksum) = self.checksum {
            bytes[0] = NEEDS_CHECKSUM;
            bytes[6..8].copy_from_slice(&moved(checksum.start).to_le_bytes());
            bytes[8..10].copy_from_slice(&checksum.offset.to_le_bytes());
        }
        if let Some(segmentation) = self.segmentation {
            bytes[1] = if segmentation.is_ipv6 { TCP6 } else { TCP4 } | if segmentation.has_ecn { ECN } else { 0 };
            bytes[2..4].copy_from_slice(&moved(segmentation.header_bytes).to_le_bytes());
            bytes[4..6].copy_from_slice(&segmentation.segment_bytes.to_le_bytes());
        }
        bytes[BUFFERS_AT] = 1;
        bytes
    }
}
