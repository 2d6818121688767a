// SPDX-License-Identifier: MIT OR Apache-2.0
//! A small file that a host takes for an image, up to the moment at which it would be entered: sending it takes no
//! time.

use handover::VERSION;
use handover::image::{BUILD_TEXT_BYTES, IMAGE_BASE, LINKED_AT, NOTE_TYPE, SECURITY_VERSION};

const CODE_AT: usize = 0x1000;
const CODE_BYTES: usize = 0x1000;
const NOTE_AT: usize = CODE_AT + CODE_BYTES;
/// Owner, entry, versions, version in text, build, trial version, security version.
const NOTE_BYTES: usize = SECURITY_AT + 4;
const TRIAL_AT: usize = 20 + 8 + 4 + 4 + 24 + BUILD_TEXT_BYTES;
const SECURITY_AT: usize = TRIAL_AT + 4;

/// The file, for this kind of machine (ELF's number; 62 is ours) and reading these hand-over versions.
pub fn image(machine: u16, oldest: u32, newest: u32) -> Vec<u8> {
    let mut bytes = vec![0; NOTE_AT + NOTE_BYTES];
    let mut put = |at: usize, part: &[u8]| bytes[at..at + part.len()].copy_from_slice(part);
    put(0, &[0x7f, b'E', b'L', b'F', 2, 1, 1]);
    put(16, &2u16.to_le_bytes());
    put(18, &machine.to_le_bytes());
    put(20, &1u32.to_le_bytes());
    put(32, &64u64.to_le_bytes());
    for (at, number) in [(52, 64u16), (54, 56), (56, 2)] {
        put(at, &number.to_le_bytes());
    }
    let load = [CODE_AT as u64, IMAGE_BASE + LINKED_AT, LINKED_AT, CODE_BYTES as u64, CODE_BYTES as u64, 4096];
    let note = [NOTE_AT as u64, LINKED_AT, LINKED_AT, NOTE_BYTES as u64, NOTE_BYTES as u64, 4];
    for (at, kind, flags, numbers) in [(64, 1u32, 5u32, load), (120, 4, 4, note)] {
        put(at, &kind.to_le_bytes());
        put(at + 4, &flags.to_le_bytes());
        numbers.iter().enumerate().for_each(|(place, number)| put(at + 8 + place * 8, &number.to_le_bytes()));
    }
    put(CODE_AT, &[0xf4; CODE_BYTES]);
    let entry = IMAGE_BASE + LINKED_AT;
    let head = [6u32, NOTE_BYTES as u32 - 20, NOTE_TYPE].map(u32::to_le_bytes).concat();
    put(
        NOTE_AT,
        &[&head[..], b"Baton\0\0\0", &entry.to_le_bytes(), &oldest.to_le_bytes(), &newest.to_le_bytes()].concat(),
    );
    put(NOTE_AT + TRIAL_AT, &1u32.to_le_bytes());
    put(NOTE_AT + SECURITY_AT, &SECURITY_VERSION.to_le_bytes());
    bytes
}

/// One that could be entered, of this security version.
pub fn of_security(version: u32) -> Vec<u8> {
    let mut bytes = good();
    bytes[NOTE_AT + SECURITY_AT..].copy_from_slice(&version.to_le_bytes());
    bytes
}

/// One that could be entered.
pub fn good() -> Vec<u8> {
    image(62, VERSION, VERSION)
}
