// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of the wire.

mod decoding;
mod frugal;
mod golden;
mod growth;
mod history;
mod paging;
mod properties;
mod quota;
mod samples;
mod schema;

use std::vec;
use std::vec::Vec;

use crate::frame::CHECKSUM;
use crate::{Decoder, Frame, FrameError, MAX_FRAME_BYTES, Request, encode};

type Decoded = Result<Frame<'static>, FrameError>;

/// Returns the bytes of one frame.
fn encoded(frame: &Frame<'_>) -> Vec<u8> {
    encode(frame, &mut [0; MAX_FRAME_BYTES]).expect("samples fit a frame").to_vec()
}

/// Returns the results of a fresh decoder for `bytes`.
fn decoded(bytes: &[u8]) -> Vec<Decoded> {
    let mut results = Vec::new();
    Decoder::new().push(bytes, |result| results.push(result));
    results
}

/// Returns the same of a host's decoder.
fn to_host(mut bytes: &[u8]) -> Vec<Result<Option<Request>, FrameError>> {
    let mut decoder = Decoder::new();
    core::iter::from_fn(|| decoder.push_to_host(&mut bytes)).collect()
}

/// Returns a frame of any content shorter than 250 bytes, its checksum right: what another version's sender would send.
fn framed(content: &[u8]) -> Vec<u8> {
    let mut body = content.to_vec();
    body.extend(CHECKSUM.checksum(content).to_le_bytes());
    let mut stuffed = vec![0];
    let mut code = 0;
    for byte in body {
        if byte == 0 {
            stuffed[code] = (stuffed.len() - code) as u8;
            code = stuffed.len();
        }
        stuffed.push(byte);
    }
    stuffed[code] = (stuffed.len() - code) as u8;
    stuffed.push(0);
    stuffed
}
