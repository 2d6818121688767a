// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames that a picture leaves out: they stand between a function and the one that it has called through them.

use std::collections::{BTreeMap, BTreeSet};

use super::stacks::{Stack, Stacks};

/// Crates whose functions call what they were given: iterators, closures, guards.
const LIBRARIES: [&str; 3] = ["core::", "alloc::", "std::"];

impl Stacks {
    /// Returns the stacks without closures and the library's functions between two others, and how many distinct
    /// functions these are. The innermost function of a stack stays: the time is its own.
    pub fn without_boilerplate(&self) -> (Self, usize) {
        let mut left_out = BTreeSet::new();
        let mut stacks: BTreeMap<Vec<String>, u64> = BTreeMap::new();
        for Stack { frames, samples } in &self.0 {
            let last = frames.len().saturating_sub(1);
            let (kept, folded): (Vec<_>, Vec<_>) =
                frames.iter().enumerate().partition(|(at, frame)| *at == last || !is_boilerplate(frame));
            left_out.extend(folded.into_iter().map(|(_, frame)| frame.as_str()));
            *stacks.entry(kept.into_iter().map(|(_, frame)| frame.clone()).collect()).or_default() += samples;
        }
        let stacks = stacks.into_iter().map(|(frames, samples)| Stack { frames, samples }).collect();
        (Self(stacks), left_out.len())
    }
}

fn is_boilerplate(name: &str) -> bool {
    // `<core::option::Option<T>>::map`, `<&mut F as core::ops::FnOnce>::call_once`; a type of the image's own that has
    // a trait of the library is no boilerplate.
    let name = name.trim_start_matches('<').trim_start_matches("&mut ").trim_start_matches('&');
    let is_library = |name: &str| LIBRARIES.iter().any(|library| name.starts_with(library));
    let is_of_library = match name.split_once(" as ") {
        Some((of_type, of_trait)) => is_library(of_type) || !of_type.contains("::") && is_library(of_trait),
        None => is_library(name),
    };
    let is_closure = |last: &str| last.starts_with("{closure") || last.starts_with("{{closure");
    is_of_library || name.rsplit("::").next().is_some_and(is_closure)
}
