// SPDX-License-Identifier: MIT OR Apache-2.0
//! The header of an Ethernet frame.

use crate::counters::Reason;
use crate::mac::Mac;

/// Bytes of a header without tag: destination, source, EtherType.
pub const HEADER_BYTES: usize = 14;
/// Bytes of a tag.
pub const TAG_BYTES: usize = 4;
/// The most bytes behind the header: an IP packet before it is segmented (virtio 1.3, section 5.1.6.3.1, has 65,550
/// bytes with the header).
pub const MAX_PAYLOAD_BYTES: usize = 65_536;
/// The most bytes of a frame.
pub const MAX_FRAME_BYTES: usize = HEADER_BYTES + TAG_BYTES + MAX_PAYLOAD_BYTES;

/// EtherType of a tag (IEEE 802.1Q-2018, table 9-1).
const TAGGED: [u8; 2] = [0x81, 0x00];
/// The bits of a tag that are the VLAN's number.
const VLAN_MASK: u16 = 0x0fff;

/// The tag of a frame: its four bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// Priority, drop eligibility, and VLAN.
    control: u16,
}

impl Tag {
    /// A tag of a VLAN with the lowest priority.
    pub fn of(vlan: u16) -> Self {
        Self { control: vlan & VLAN_MASK }
    }

    /// The VLAN; 0: the tag is for the priority only.
    pub fn vlan(self) -> u16 {
        self.control & VLAN_MASK
    }

    /// The same priority in another VLAN.
    pub fn with_vlan(self, vlan: u16) -> Self {
        Self { control: self.control & !VLAN_MASK | vlan & VLAN_MASK }
    }

    /// Its bytes in the frame.
    pub fn bytes(self) -> [u8; TAG_BYTES] {
        let [high, low] = self.control.to_be_bytes();
        [TAGGED[0], TAGGED[1], high, low]
    }
}

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Its destination.
    pub destination: Mac,
    /// Its source.
    pub source: Mac,
    /// Its tag.
    pub tag: Option<Tag>,
    /// Bytes behind the header and the tag.
    pub payload_bytes: usize,
}

impl Header {
    /// Reads the header of a frame of `frame_bytes` bytes, of which `first` are the first ones.
    ///
    /// # Errors
    /// [`Reason::Short`] if it has no whole header, or `first` does not; [`Reason::Long`] if it is longer than any.
    pub fn parse(first: &[u8; HEADER_BYTES + TAG_BYTES], frame_bytes: usize) -> Result<Self, Reason> {
        let [d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5, type0, type1, high, low, ..] = *first;
        let is_tagged = [type0, type1] == TAGGED;
        let header_bytes = HEADER_BYTES + if is_tagged { TAG_BYTES } else { 0 };
        let payload_bytes = frame_bytes.checked_sub(header_bytes).ok_or(Reason::Short)?;
        if payload_bytes > MAX_PAYLOAD_BYTES {
            return Err(Reason::Long);
        }
        Ok(Self {
            destination: Mac([d0, d1, d2, d3, d4, d5]),
            source: Mac([s0, s1, s2, s3, s4, s5]),
            tag: is_tagged.then_some(Tag { control: u16::from_be_bytes([high, low]) }),
            payload_bytes,
        })
    }
}
