// SPDX-License-Identifier: MIT OR Apache-2.0
//! "Did you mean …?"

/// Returns the candidate nearest to a misspelt word, if one is near enough to be meant.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let bound = (word.chars().count() / 3).clamp(1, 4);
    let distances = candidates.into_iter().map(|candidate| (distance(word, candidate), candidate));
    distances.filter(|(distance, _)| *distance <= bound).min().map(|(_, candidate)| candidate)
}

/// Returns the end of an error message: `; did you mean "…"?`, or nothing.
pub fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, candidates).map(|found| format!("; did you mean {found:?}?")).unwrap_or_default()
}

/// Returns the number of letters to insert, remove, replace or swap with their neighbour, ignoring case.
fn distance(left: &str, right: &str) -> usize {
    strsim::osa_distance(&left.to_lowercase(), &right.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_understood() {
        let keys = ["kernel", "initrd", "memory", "vcpus"];
        for (word, meant) in [("kernal", "kernel"), ("Memory", "memory"), ("intird", "initrd"), ("cpus", "vcpus")] {
            assert_eq!(nearest(word, keys), Some(meant));
        }
    }

    #[test]
    fn another_word_is_not_guessed_at() {
        assert_eq!(nearest("network", ["kernel", "initrd"]), None);
        assert_eq!(did_you_mean("x", []), "");
        assert_eq!(did_you_mean("kernal", ["kernel"]), "; did you mean \"kernel\"?");
    }
}
