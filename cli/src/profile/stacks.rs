// SPDX-License-Identifier: MIT OR Apache-2.0
//! Samples by stack: equal ones are counted together, addresses have names.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use profile::{Sample, Samples};
use serde::Serialize;

/// One stack, and how often it was seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stack {
    /// The outermost function first.
    pub frames: Vec<String>,
    /// The number of its samples.
    pub samples: u64,
}

/// All stacks, sorted, so that those with equal beginnings follow each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Stacks(pub Vec<Stack>);

impl Stacks {
    /// Counts these samples' words; the image's code begins at `code`. `functions_at` returns the functions at an
    /// address, the innermost first; `guest` returns a guest's name.
    pub fn of(
        words: &[u32],
        code: u64,
        functions_at: impl Fn(u64) -> Vec<String>,
        guest: impl Fn(u32) -> String,
    ) -> Self {
        let mut known: HashMap<(u32, bool), Vec<String>> = HashMap::new();
        let mut counts: BTreeMap<Vec<String>, u64> = BTreeMap::new();
        for sample in Samples(words) {
            let frames = match sample {
                Sample::Idle => vec!["idle".to_owned()],
                Sample::Guest(number) => vec![format!("guest {}", guest(number))],
                Sample::Host([]) => vec!["outside of the image".to_owned()],
                Sample::Host(addresses) => {
                    let mut frames = Vec::new();
                    for (index, &offset) in addresses.iter().enumerate() {
                        // All but the innermost are return addresses: the call stands before them.
                        let is_return = index > 0;
                        let at = code + u64::from(offset) - u64::from(is_return);
                        let functions = known.entry((offset, is_return)).or_insert_with(|| functions_at(at));
                        frames.extend(functions.iter().cloned());
                    }
                    frames.reverse();
                    frames
                }
            };
            *counts.entry(frames).or_default() += 1;
        }
        Self(counts.into_iter().map(|(frames, samples)| Stack { frames, samples }).collect())
    }

    /// Returns the number of all samples.
    pub fn total(&self) -> u64 {
        self.0.iter().map(|stack| stack.samples).sum()
    }

    /// Returns a line for each stack: its functions, parted by semicolons, and its samples. Flame graph tools read
    /// that.
    pub fn folded(&self) -> String {
        let mut text = String::new();
        for stack in &self.0 {
            let frames: Vec<String> = stack.frames.iter().map(|frame| frame.replace(';', ":")).collect();
            let _ = writeln!(text, "{} {}", frames.join(";"), stack.samples);
        }
        text
    }

    /// Samples by innermost function, the most first.
    pub fn hottest(&self) -> Vec<(&str, u64)> {
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        for stack in &self.0 {
            if let Some(last) = stack.frames.last() {
                *counts.entry(last).or_default() += stack.samples;
            }
        }
        let mut all: Vec<(&str, u64)> = counts.into_iter().collect();
        all.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
        all
    }
}

#[cfg(test)]
#[path = "stacks_tests.rs"]
mod tests;
