// SPDX-License-Identifier: MIT OR Apache-2.0
//! The frames that a card sends, read as untrusted input: Ethernet II, IPv4 (RFC 791), UDP (RFC 768).

/// The bytes that a datagram of the stream begins with; its number follows, in 8 bytes (`guests/agent/src/stream.rs`).
const MAGIC: &[u8; 8] = b"batonudp";
const ETHERNET_BYTES: usize = 14;
const ETHERTYPE: usize = 12;
const IPV4: [u8; 2] = [0x08, 0x00];
const PROTOCOL: usize = 9;
const UDP: u8 = 17;
const UDP_BYTES: usize = 8;
/// More fragments, and the offset of this one.
const FRAGMENT: core::ops::Range<usize> = 6..8;
const IS_FRAGMENT: u16 = 0x3fff;

/// Returns the payload of a UDP datagram that a frame carries whole.
pub(super) fn payload(frame: &[u8]) -> Option<&[u8]> {
    let (header, packet) = frame.split_at_checked(ETHERNET_BYTES)?;
    (header.get(ETHERTYPE..)? == IPV4).then_some(())?;
    let first = *packet.first()?;
    let header_bytes = usize::from(first & 0xf) * 4;
    let is_whole = word(packet, FRAGMENT.start)? & IS_FRAGMENT == 0;
    (first >> 4 == 4 && header_bytes >= 20 && is_whole && *packet.get(PROTOCOL)? == UDP).then_some(())?;
    let datagram = packet.get(header_bytes..usize::from(word(packet, 2)?))?;
    datagram.get(UDP_BYTES..usize::from(word(datagram, 4)?))
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// Returns the number of a datagram of the stream.
pub(super) fn number(payload: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(payload.strip_prefix(MAGIC)?.try_into().ok()?))
}

#[cfg(test)]
pub(super) mod tests;
