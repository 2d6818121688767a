// SPDX-License-Identifier: MIT OR Apache-2.0
//! "Did you mean …": the known option that a word is a misspelling of.

use super::table::OPTIONS;

/// Words longer than this resemble no option.
const LONGEST_WORD: usize = 24;

/// The known name that takes the fewest edits to reach, if these are few for its length.
pub(super) fn name(word: &str) -> Option<&'static str> {
    OPTIONS
        .iter()
        .map(|option| (distance(word.as_bytes(), option.name.as_bytes()), option.name))
        .filter(|(edits, name)| *edits <= name.len().div_ceil(3))
        .min()
        .map(|(_, name)| name)
}

/// Levenshtein's distance in bytes, case aside, one row at a time.
fn distance(word: &[u8], name: &[u8]) -> usize {
    if word.len() > LONGEST_WORD {
        return usize::MAX;
    }
    let mut row: [usize; LONGEST_WORD + 1] = core::array::from_fn(|column| column);
    for (index, expected) in name.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (column, found) in word.iter().enumerate() {
            let replaced = diagonal + usize::from(!expected.eq_ignore_ascii_case(found));
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[word.len()]
}
