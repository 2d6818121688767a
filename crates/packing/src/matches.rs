// SPDX-License-Identifier: MIT OR Apache-2.0
//! Earlier occurrences of what comes next.

use seal::inflate::WINDOW_BYTES;

/// The shortest match, and the longest.
pub(super) const MIN_LENGTH: usize = 3;
pub(super) const MAX_LENGTH: usize = 258;
/// Earlier places that are tried.
const MAX_TRIES: usize = 1500;
const HASH_BITS: u32 = 15;
/// No place.
const NONE: u32 = u32::MAX;

/// An earlier occurrence of the bytes at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Match {
    pub length: u16,
    pub distance: u16,
}

/// For each place behind the first `from` bytes: the nearest match of each length that is longer than nearer ones.
pub(super) fn find(bytes: &[u8], from: usize) -> Vec<Vec<Match>> {
    let (mut heads, mut before) = (vec![NONE; 1 << HASH_BITS], vec![NONE; bytes.len()]);
    let mut found = Vec::with_capacity(bytes.len() - from);
    for at in 0..bytes.len() {
        let Some(hash) = hash(&bytes[at..]) else {
            if at >= from {
                found.push(Vec::new());
            }
            continue;
        };
        if at >= from {
            found.push(matches_at(bytes, at, heads[hash], &before));
        }
        before[at] = std::mem::replace(&mut heads[hash], at as u32);
    }
    found
}

fn matches_at(bytes: &[u8], at: usize, mut place: u32, before: &[u32]) -> Vec<Match> {
    let longest = MAX_LENGTH.min(bytes.len() - at);
    let (mut found, mut length) = (Vec::new(), MIN_LENGTH - 1);
    for _ in 0..MAX_TRIES {
        let Some(distance) = at.checked_sub(place as usize).filter(|&distance| distance <= WINDOW_BYTES) else { break };
        let earlier = place as usize;
        if bytes[earlier + length] == bytes[at + length] {
            let same = (0..longest).take_while(|&offset| bytes[earlier + offset] == bytes[at + offset]).count();
            if same > length {
                length = same;
                found.push(Match { length: length as u16, distance: distance as u16 });
                if length == longest {
                    break;
                }
            }
        }
        place = before[earlier];
    }
    found
}

fn hash(bytes: &[u8]) -> Option<usize> {
    let &[a, b, c, ..] = bytes else { return None };
    let word = u32::from_le_bytes([a, b, c, 0]);
    Some((word.wrapping_mul(0x9e37_79b1) >> (32 - HASH_BITS)) as usize)
}
