// SPDX-License-Identifier: MIT OR Apache-2.0
use proptest::prelude::*;

use super::*;

/// The end of the datagram in [`frame`].
const FRAME_END: usize = ETHERNET_BYTES + 20 + UDP_BYTES + 16;

/// A datagram of the stream.
pub(in super::super) fn datagram(number: u64) -> Vec<u8> {
    [&MAGIC[..], &number.to_le_bytes()].concat()
}

/// A frame with it, and what a card adds to reach the least size.
pub(in super::super) fn frame(number: u64) -> Vec<u8> {
    let datagram = datagram(number);
    let (udp, ip) = (8 + datagram.len() as u16, 28 + datagram.len() as u16);
    let mut frame = vec![0xff; 12];
    frame.extend(IPV4);
    frame.extend([0x45, 0, ip.to_be_bytes()[0], ip.to_be_bytes()[1], 0, 0, 0x40, 0, 64, UDP, 0, 0]);
    frame.extend([10, 0, 2, 15, 10, 0, 2, 255]);
    frame.extend([0x90, 0, 0x23, 0x28, udp.to_be_bytes()[0], udp.to_be_bytes()[1], 0, 0]);
    frame.extend(datagram);
    frame.resize(frame.len().max(60), 0);
    frame
}

fn number_in(frame: &[u8]) -> Option<u64> {
    number(payload(frame)?)
}

#[test]
fn a_frame_with_a_datagram_of_the_stream_has_its_number() {
    assert_eq!(number_in(&frame(0x1234_5678_9abc)), Some(0x1234_5678_9abc));
}

#[test]
fn other_frames_have_none() {
    // The bytes: the type, the version, a fragment, the protocol, the magic.
    for (at, value) in [(12, 0x86), (14, 0x65), (20, 0x20), (23, 6), (42, b'x')] {
        let mut frame = frame(7);
        frame[at] = value;
        assert_eq!(number_in(&frame), None, "byte {at}");
    }
}

#[test]
fn a_payload_of_another_length_has_none() {
    assert_eq!(number(b"batonudp"), None);
    assert_eq!(number(&[&datagram(1)[..], &[0]].concat()), None);
}

proptest! {
    #[test]
    fn no_frame_is_too_much(mut bytes in prop::collection::vec(any::<u8>(), 0..100), place in 0..FRAME_END, value: u8) {
        let _ = number_in(&bytes);
        bytes = frame(3);
        bytes[place] = value;
        let _ = number_in(&bytes);
        bytes.truncate(place);
        prop_assert_eq!(number_in(&bytes), None);
    }
}
