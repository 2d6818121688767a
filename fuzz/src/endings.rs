// SPDX-License-Identifier: MIT OR Apache-2.0
//! Input of a host that comes up after another's end, and of a host that has ended.

use crc::{CRC_32_ISO_HDLC, Crc};
use endstate::epitaph::{EPITAPH_BYTES, Epitaph};
use wire::frugal::{Asked, Listener, MAX_QUESTION_BYTES};
use wire::{Decoder, Frame, VERSION};

use crate::input::Input;
use crate::messages::stuffed;

const CHECKSUM: Crc<u32> = Crc::<u32>::new(&CRC_32_ISO_HDLC);
/// Offset of an epitaph's text in bytes (the table in `endstate::epitaph`).
const TEXT: usize = 416;
/// Bytes of its header before the registers, of which the first 16 are given.
const HEADER: usize = 48;

/// Memory: any bytes, or an epitaph with the right magic number, version, length and checksum.
pub fn epitaph(data: &[u8]) {
    let mut input = Input(data);
    let memory = if input.bool() { input.0.to_vec() } else { sealed(&mut input) };
    match Epitaph::read(&memory) {
        Ok(epitaph) => epitaph.lines(&mut |line| {
            let line = line.to_string();
            assert!(!line.chars().any(char::is_control), "{line:?} would command a terminal");
        }),
        Err(damage) => drop(damage.to_string()),
    }
}

fn sealed(input: &mut Input<'_>) -> Vec<u8> {
    let mut memory = b"BatonEnd".to_vec();
    memory.extend_from_slice(&1_u32.to_le_bytes());
    memory.extend_from_slice(&[0; 4]);
    memory.extend((16..HEADER).map(|_| input.u8()));
    memory.resize(TEXT, 0x5a);
    memory.extend_from_slice(&input.0[..input.0.len().min(EPITAPH_BYTES)]);
    let length = memory.len() as u32 + 4;
    memory[12..16].copy_from_slice(&length.to_le_bytes());
    memory.extend_from_slice(&CHECKSUM.checksum(&memory).to_le_bytes());
    memory
}

/// A stream of frames: whatever a host that has ended takes for a question is one for a living host too, of the same
/// number.
pub fn questions(data: &[u8]) {
    let mut input = Input(data);
    let mut listener = Listener::new();
    while !input.is_empty() {
        let mut message = vec![VERSION];
        message.extend_from_slice(input.string());
        message.extend_from_slice(&CHECKSUM.checksum(&message).to_le_bytes());
        let frame = if input.bool() { stuffed(&message) } else { [input.string(), &[0]].concat() };
        let heard: Vec<_> = frame.iter().filter_map(|&byte| listener.push_byte(byte)).collect();
        let mut living = Vec::new();
        Decoder::new().push(&frame, |result| living.push(result));
        if let ([Ok(Frame::Request(request))], true) = (living.as_slice(), frame.len() <= MAX_QUESTION_BYTES) {
            assert!(matches!(heard.as_slice(), [Ok(question)] if question.id == request.id), "{request:?} {heard:?}");
        }
        for question in heard.into_iter().flatten().filter(|question| question.asked != Asked::Other) {
            let is_known = living.iter().any(|result| matches!(result, Ok(Frame::Request(r)) if r.id == question.id));
            assert!(is_known, "{question:?} is none for a living host: {living:?}");
        }
    }
}
