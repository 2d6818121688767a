// SPDX-License-Identifier: MIT OR Apache-2.0
//! The value that powers the machine off, found in the DSDT by its bytes.
//!
//! `\_S5_` is a package of small integers (ACPI 6.5, section 7.4.2), in practice always written as constants:
//!
//! ```text
//! 08 [5c] 5f 53 35 5f  12 06 04  0a 05  0a 05  00 00
//! |  |    _S5_         |  |  |   |      |
//! |  root prefix       |  |  |   |      SLP_TYP for PM1b
//! NameOp               |  |  |   SLP_TYP for PM1a: zero, one, or a byte, word, … prefix and the value
//!                      |  |  number of elements
//!                      |  package length, itself included (section 20.2.4)
//!                      PackageOp
//! ```
//!
//! Bytes that equal the name but are not followed by such a package (a reference to it, say) are passed over. A package
//! that a method computes would need an interpreter and is not found.

use crate::Fault;
use crate::table::{HEADER_BYTES, Table};

const NAME: [u8; 4] = *b"_S5_";
const NAME_OP: u8 = 0x08;
const ROOT_PREFIX: u8 = b'\\';
const PACKAGE_OP: u8 = 0x12;
/// Bytes searched at a time.
const CHUNK_BYTES: usize = 512;
/// Bytes that the part of a package that is read can have: operator, length, count, two integers.
const PACKAGE_BYTES: usize = 1 + 4 + 1 + 2 * 9;
/// SLP_TYP is three bits wide (section 4.8.3.2.1).
const MAX_SLEEP_TYPE: u64 = 7;

/// SLP_TYP for power-off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SleepTypes {
    /// For PM1a control.
    pub a: u8,
    /// For PM1b control, where the package has it.
    pub b: Option<u8>,
}

/// Searches the table for the package.
///
/// # Errors
/// [`Fault::NoSleepType`] if it is not there; [`Fault::Unreadable`] if the table has become so.
pub fn find_s5(dsdt: &Table<'_>) -> Result<SleepTypes, Fault> {
    let mut buffer = [0; CHUNK_BYTES];
    let mut offset = HEADER_BYTES;
    while offset < dsdt.bytes() {
        let chunk = dsdt.read_some(offset, &mut buffer)?;
        let places = chunk.windows(NAME.len()).zip(offset..).filter(|(window, _)| *window == NAME);
        if let Some(types) = places.into_iter().find_map(|(_, at)| package_of(dsdt, at)) {
            return Ok(types);
        }
        // The last bytes again: the name may begin in one chunk and end in the next.
        offset += (CHUNK_BYTES - (NAME.len() - 1)) as u32;
    }
    Err(Fault::NoSleepType)
}

/// Returns the package named at `offset`, if that is the definition of one.
fn package_of(dsdt: &Table<'_>, offset: u32) -> Option<SleepTypes> {
    let is_definition = match dsdt.array(offset.checked_sub(2)?)? {
        [_, NAME_OP] | [NAME_OP, ROOT_PREFIX] => true,
        [_, _] => false,
    };
    let start = offset + NAME.len() as u32;
    let mut buffer = [0; PACKAGE_BYTES];
    let bytes = dsdt.read_some(start, &mut buffer).ok()?;
    let (&PACKAGE_OP, after) = bytes.split_first()? else { return None };
    let (length, length_bytes) = package_length(after)?;
    let left = dsdt.bytes().saturating_sub(start + 1);
    (is_definition && length <= left).then_some(())?;
    let package = &after[..after.len().min(length as usize)];
    let (&elements, rest) = package.get(length_bytes..)?.split_first()?;
    sleep_types(elements, rest)
}

fn sleep_types(elements: u8, bytes: &[u8]) -> Option<SleepTypes> {
    let sleep_type = |value: u64| (value <= MAX_SLEEP_TYPE).then_some(value as u8);
    let (a, rest) = integer(bytes).filter(|_| elements >= 1)?;
    let b = integer(rest).filter(|_| elements >= 2).and_then(|(b, _)| sleep_type(b));
    Some(SleepTypes { a: sleep_type(a)?, b })
}

/// A package length (section 20.2.4) and the bytes it takes: the first byte's top two bits state how many follow.
fn package_length(bytes: &[u8]) -> Option<(u32, usize)> {
    let (&lead, rest) = bytes.split_first()?;
    let following = usize::from(lead >> 6);
    if following == 0 {
        return Some((u32::from(lead & 0x3f), 1));
    }
    let high = rest.get(..following)?.iter().rev().fold(0, |value, &byte| value << 8 | u32::from(byte));
    Some((high << 4 | u32::from(lead & 0xf), 1 + following))
}

/// Returns a constant integer (section 20.2.3) and the bytes after it.
fn integer(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (&operator, rest) = bytes.split_first()?;
    let width = match operator {
        0x00 | 0x01 => return Some((u64::from(operator), rest)),
        0x0a => 1,
        0x0b => 2,
        0x0c => 4,
        0x0e => 8,
        _ => return None,
    };
    let (value, rest) = rest.split_at_checked(width)?;
    Some((value.iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte)), rest))
}

#[cfg(test)]
#[path = "sleep_tests.rs"]
mod tests;
