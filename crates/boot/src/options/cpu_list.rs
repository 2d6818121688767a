// SPDX-License-Identifier: MIT OR Apache-2.0
//! A list of CPUs by number, as `0-3,8`.

use core::str::FromStr;

use super::word::{self, UnknownValue};

/// One more than the highest number in a list.
pub const NUMBERS: u32 = 1024;
const WORDS: usize = NUMBERS as usize / 64;

/// A set of numbers below [`NUMBERS`]; not empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuList([u64; WORDS]);

impl CpuList {
    /// Returns whether a number is in the list.
    pub fn contains(&self, number: u32) -> bool {
        self.0.get(number as usize / 64).is_some_and(|word| word >> (number % 64) & 1 != 0)
    }

    /// Its numbers, rising.
    pub fn numbers(&self) -> impl Iterator<Item = u32> {
        (0..NUMBERS).filter(|number| self.contains(*number))
    }

    fn add(&mut self, first: u32, last: u32) {
        for number in first..=last {
            if let Some(word) = self.0.get_mut(number as usize / 64) {
                *word |= 1 << (number % 64);
            }
        }
    }
}

impl FromStr for CpuList {
    type Err = UnknownValue;

    /// Numbers and rising ranges, joined by commas; in any order, and more than once.
    fn from_str(text: &str) -> Result<Self, UnknownValue> {
        let mut list = Self([0; WORDS]);
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (number(first)?, number(last)?);
            if first > last {
                return Err(UnknownValue);
            }
            list.add(first, last);
        }
        Ok(list)
    }
}

fn number(word: &str) -> Result<u32, UnknownValue> {
    word::number(word, 0, NUMBERS - 1).ok_or(UnknownValue)
}
