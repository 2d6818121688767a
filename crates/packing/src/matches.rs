// SPDX-License-Identifier: MIT OR Apache-2.0
//! Earlier occurrences of what comes next.

use std::collections::VecDeque;
use std::ops::Range;

use seal::inflate::WINDOW_BYTES;

/// The shortest match, and the longest.
pub(super) const MIN_LENGTH: usize = 3;
pub(super) const MAX_LENGTH: usize = 258;
/// Earlier places that are tried.
const MAX_TRIES: usize = 1500;
const HASH_BITS: u32 = 15;
/// Places that are kept: a power of two, and no less than the window has.
const RING: usize = WINDOW_BYTES.next_power_of_two();
/// No place.
const NONE: u32 = u32::MAX;

/// An earlier occurrence of the bytes at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Match {
    pub length: u16,
    pub distance: u16,
}

/// Finds earlier occurrences, place by place through a file: what it has found once serves each piece that begins
/// there.
#[derive(Debug)]
pub(super) struct Finder {
    /// The last place of each hash, and the place before each place in the window that has the same one.
    heads: Vec<u32>,
    before: Vec<u32>,
    /// The matches at the places from `first` on; those from `next` on are not known yet.
    found: VecDeque<Vec<Match>>,
    first: usize,
    next: usize,
}

impl Finder {
    pub fn new() -> Self {
        Self { heads: vec![NONE; 1 << HASH_BITS], before: vec![NONE; RING], found: VecDeque::new(), first: 0, next: 0 }
    }

    /// Returns for each place of a span the nearest match of each length that is longer than nearer ones. A match may
    /// reach past the span's end.
    pub fn matches(&mut self, file: &[u8], span: Range<usize>) -> impl Iterator<Item = &[Match]> {
        if !(self.first..=self.next).contains(&span.start) {
            self.begin(file, span.start);
        }
        self.found.drain(..span.start - self.first);
        self.first = span.start;
        while self.next < span.end {
            let found =
                hash(&file[self.next..]).map(|hash| matches_at(file, self.next, self.heads[hash], &self.before));
            self.found.push_back(found.unwrap_or_default());
            self.pass(file);
        }
        self.found.iter().take(span.len()).map(Vec::as_slice)
    }

    /// Begins at a place, with the window before it.
    fn begin(&mut self, file: &[u8], at: usize) {
        *self = Self { first: at, next: at.saturating_sub(WINDOW_BYTES), ..Self::new() };
        while self.next < at {
            self.pass(file);
        }
    }

    fn pass(&mut self, file: &[u8]) {
        if let Some(hash) = hash(&file[self.next..]) {
            self.before[self.next % RING] = std::mem::replace(&mut self.heads[hash], self.next as u32);
        }
        self.next += 1;
    }
}

fn matches_at(bytes: &[u8], at: usize, mut place: u32, before: &[u32]) -> Vec<Match> {
    let longest = MAX_LENGTH.min(bytes.len() - at);
    let (mut found, mut length) = (Vec::new(), MIN_LENGTH - 1);
    for _ in 0..MAX_TRIES {
        let Some(distance) = at.checked_sub(place as usize).filter(|&distance| distance <= WINDOW_BYTES) else { break };
        let earlier = place as usize;
        // Most are no longer than the last one found: their ends show that first.
        if bytes[earlier + length - 1..=earlier + length] == bytes[at + length - 1..=at + length] {
            let same = common(&bytes[earlier..][..longest], &bytes[at..][..longest]);
            if same > length {
                length = same;
                found.push(Match { length: length as u16, distance: distance as u16 });
                if length == longest {
                    break;
                }
            }
        }
        place = before[earlier % RING];
    }
    found
}

/// Returns how many bytes two pieces have in common at their beginning, of one length.
fn common(one: &[u8], other: &[u8]) -> usize {
    const STEP: usize = size_of::<u64>();
    let words = one.chunks_exact(STEP).zip(other.chunks_exact(STEP));
    let whole = words.take_while(|(one, other)| one == other).count() * STEP;
    whole + one[whole..].iter().zip(&other[whole..]).take_while(|(one, other)| one == other).count()
}

fn hash(bytes: &[u8]) -> Option<usize> {
    let &[a, b, c, ..] = bytes else { return None };
    let word = u32::from_le_bytes([a, b, c, 0]);
    Some((word.wrapping_mul(0x9e37_79b1) >> (32 - HASH_BITS)) as usize)
}
