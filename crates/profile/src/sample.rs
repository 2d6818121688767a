// SPDX-License-Identifier: MIT OR Apache-2.0
//! Format of a sample, in words of 32 bits.
//!
//! The first word's two lowest bits state the activity; the rest is a number: the guest's, or how many words follow.
//! These are addresses in the image's code, from its beginning, the instruction's first, then return addresses, nearest
//! first.

/// The most addresses of a sample; addresses further up are left out.
pub const MOST_FRAMES: usize = 31;
/// The most words of a sample.
pub const MOST_WORDS: usize = 1 + MOST_FRAMES;

const IDLE: u32 = 0;
const GUEST: u32 = 1;
const HOST: u32 = 2;
const KIND_BITS: u32 = 2;

/// Activity of a CPU at a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sample<'a> {
    /// It had nothing to do.
    Idle,
    /// It executed this guest.
    Guest(u32),
    /// It executed the image: where, and called from where.
    Host(&'a [u32]),
}

impl<'a> Sample<'a> {
    /// Returns its words.
    pub fn encode(self, into: &mut [u32; MOST_WORDS]) -> &[u32] {
        let mut words = 1;
        into[0] = match self {
            Self::Idle => IDLE,
            Self::Guest(number) => number << KIND_BITS | GUEST,
            Self::Host(frames) => {
                let (_, places) = into.split_at_mut(1);
                words += places.iter_mut().zip(frames).map(|(place, frame)| *place = *frame).count();
                (words as u32 - 1) << KIND_BITS | HOST
            }
        };
        &into[..words]
    }

    /// The first of the samples in `words`, and the rest; `None` where no whole one is.
    pub fn decode(words: &'a [u32]) -> Option<(Self, &'a [u32])> {
        let (&first, rest) = words.split_first()?;
        let number = first >> KIND_BITS;
        match first & ((1 << KIND_BITS) - 1) {
            IDLE => Some((Self::Idle, rest)),
            GUEST => Some((Self::Guest(number), rest)),
            HOST => rest.split_at_checked(number as usize).map(|(frames, rest)| (Self::Host(frames), rest)),
            _ => None,
        }
    }
}

/// Returns how many words a sample has that begins with this one.
pub(crate) fn words_of(first: u32) -> usize {
    match first & ((1 << KIND_BITS) - 1) {
        HOST => 1 + (first >> KIND_BITS) as usize,
        _ => 1,
    }
}

/// The samples in a sequence of words, up to the first that is not a sample.
#[derive(Clone, Copy, Debug)]
pub struct Samples<'a>(
    /// The words.
    pub &'a [u32],
);

impl<'a> Iterator for Samples<'a> {
    type Item = Sample<'a>;

    fn next(&mut self) -> Option<Sample<'a>> {
        let (sample, rest) = Sample::decode(self.0)?;
        self.0 = rest;
        Some(sample)
    }
}
