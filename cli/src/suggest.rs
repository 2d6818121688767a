// SPDX-License-Identifier: MIT OR Apache-2.0
//! "Did you mean …?"

/// The candidate nearest to a misspelt word, where one is near enough to be meant.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let bound = (word.chars().count() / 3).clamp(1, 4);
    let distances = candidates.into_iter().map(|candidate| (distance(word, candidate), candidate));
    distances.filter(|(distance, _)| *distance <= bound).min().map(|(_, candidate)| candidate)
}

/// The end of an error message: `; did you mean "…"?`, or nothing.
pub fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, candidates).map(|found| format!("; did you mean {found:?}?")).unwrap_or_default()
}

/// Letters to insert, remove, replace or swap with their neighbour (the optimal string alignment distance), ignoring
/// case.
fn distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.to_lowercase().chars().collect();
    let right: Vec<char> = right.to_lowercase().chars().collect();
    let mut rows = vec![(0..=right.len()).collect::<Vec<_>>()];
    for (i, a) in left.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in right.iter().enumerate() {
            let mut best = (rows[i][j] + usize::from(a != b)).min(rows[i][j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *a == right[j - 1] && left[i - 1] == *b {
                best = best.min(rows[i - 1][j - 1] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[left.len()][right.len()]
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
