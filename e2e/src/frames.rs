// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames that no sender of ours would send. Good ones come from [`wire::encode`].

use anyhow::Result;
use wire::{Frame, MAX_FRAME_BYTES, Request, RequestBody, Response, VERSION, encode};

/// The bytes of a good frame: a question.
pub fn question() -> Result<Vec<u8>> {
    bytes(&Frame::Request(Request { id: 7, body: RequestBody::Info }))
}

/// A good frame that only a host may send.
pub fn answer() -> Result<Vec<u8>> {
    bytes(&Frame::Response(Response { id: 7, result: Ok(wire::ReplyBody::Done) }))
}

/// The first half of a question, and then a delimiter.
pub fn truncated() -> Result<Vec<u8>> {
    let whole = question()?;
    Ok([&whole[..whole.len() / 2], &[0]].concat())
}

/// A whole frame of another version of the protocol.
pub fn of_unknown_version() -> Vec<u8> {
    framed(&[VERSION + 1, 1, 2, 3])
}

/// A whole frame with content that is no message.
pub fn of_unknown_content() -> Vec<u8> {
    framed(&[VERSION, 0xee, 0xee, 0xee])
}

/// A request that only a newer release knows (variant 999, with a field), as `cbor` has it.
pub fn of_a_newer_release() -> Vec<u8> {
    framed(&[VERSION, 0x82, 0, 0x82, 7, 0x82, 0x19, 0x03, 0xe7, 0x81, 1])
}

/// A frame longer than any may be.
pub fn too_long() -> Vec<u8> {
    let mut bytes = vec![0x55; MAX_FRAME_BYTES + 1000];
    bytes.push(0);
    bytes
}

/// So many bytes without order (xorshift), with a delimiter at the end.
pub fn noise(count: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..count).map(|_| next()).chain([0]).collect()
}

fn bytes(frame: &Frame<'_>) -> Result<Vec<u8>> {
    Ok(encode(frame, &mut [0; MAX_FRAME_BYTES])?.to_vec())
}

/// A frame of any short content, its checksum right: consistent overhead byte stuffing as `crates/wire` describes it.
fn framed(content: &[u8]) -> Vec<u8> {
    let body = [content, &bundle::crc32(content).to_le_bytes()].concat();
    let mut stuffed = Vec::new();
    for run in body.split(|&byte| byte == 0) {
        stuffed.push(run.len() as u8 + 1);
        stuffed.extend(run);
    }
    stuffed.push(0);
    stuffed
}
