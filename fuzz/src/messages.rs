// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages that arrive on the wire.

use crc::{CRC_32_ISO_HDLC, Crc};
use pci::Selector;
use wire::{Decoder, Frame, FrameError, MAX_FRAME_BYTES, RequestBody, VERSION, encode};

use crate::input::Input;

const CHECKSUM: Crc<u32> = Crc::<u32>::new(&CRC_32_ISO_HDLC);

/// A stream: any bytes in pieces of any length, or messages with version, checksum and stuffing right.
pub fn wire(data: &[u8]) {
    let mut input = Input(data);
    let mut decoder = Decoder::new();
    if input.bool() {
        while !input.is_empty() {
            let piece = input.string();
            decoder.push(piece, check);
        }
    } else {
        while !input.is_empty() {
            let mut message = vec![VERSION];
            message.extend_from_slice(input.string());
            message.extend_from_slice(&CHECKSUM.checksum(&message).to_le_bytes());
            decoder.push(&stuffed(&message), check);
        }
    }
    decoder.finish();
    // Whatever was there before, the next message arrives whole.
    let mut buffer = [0; MAX_FRAME_BYTES];
    let frame = Frame::Request(wire::Request { id: 7, body: RequestBody::Info });
    let bytes = encode(&frame, &mut buffer).expect("a small message fits");
    let mut received = Vec::new();
    decoder.push(bytes, |result| received.push(result));
    assert_eq!(received, [Ok(frame)]);
}

/// A message that has been decoded can be encoded again, and means the same.
fn check(result: Result<Frame<'static>, FrameError>) {
    let frame = match result {
        Ok(frame) => frame,
        Err(error) => return drop(error.to_string()),
    };
    if let Frame::Request(request) = &frame {
        check_request(&request.body);
    }
    let mut buffer = [0; MAX_FRAME_BYTES];
    let bytes = encode(&frame, &mut buffer).expect("what came in a frame fits into one");
    let mut again = Vec::new();
    Decoder::new().push(bytes, |result| again.push(result));
    assert_eq!(again, [Ok(frame)]);
}

/// A choice of a PCI function prints as it is read, or is refused with the reason.
fn check_request(body: &RequestBody) {
    let (RequestBody::PciAssign { function, .. } | RequestBody::PciRelease { function, .. }) = body else { return };
    match Selector::parse(function) {
        Ok(selector) => assert_eq!(Selector::parse(&selector.to_string()), Ok(selector)),
        Err(error) => drop(error.to_string()),
    }
}

/// Consistent overhead byte stuffing: no zero but the delimiter.
pub(crate) fn stuffed(message: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for group in message.split(|&byte| byte == 0) {
        let mut chunks = group.chunks_exact(254);
        for chunk in &mut chunks {
            out.push(0xff);
            out.extend_from_slice(chunk);
        }
        let rest = chunks.remainder();
        out.push(rest.len() as u8 + 1);
        out.extend_from_slice(rest);
    }
    out.push(0);
    out
}
