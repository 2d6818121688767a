// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that a text names between backticks: in full, by their path in the repository, or short, by the end of a path
//! that the same text names in full or has a folder of.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::quoted;

/// Kinds of files by which a name is one, with or without a folder.
const KINDS: [&str; 8] = [".rs", ".S", ".md", ".sh", ".toml", ".ld", ".lock", ".txt"];
/// Not in the repository.
const BUILT: &str = "target";

/// The repository's files and folders, by their paths in it.
pub struct Tree(BTreeSet<String>);

impl Tree {
    pub fn of(root: &Path) -> Self {
        let (mut paths, mut folders) = (BTreeSet::new(), vec![root.to_owned()]);
        while let Some(folder) = folders.pop() {
            for path in fs::read_dir(&folder).expect("a folder").flatten().map(|entry| entry.path()) {
                if path.is_dir() && !path.ends_with(BUILT) && !path.ends_with(".git") {
                    folders.push(path.clone());
                }
                paths.insert(path.strip_prefix(root).expect("it is inside").to_string_lossy().into_owned());
            }
        }
        Self(paths)
    }

    #[cfg(test)]
    pub fn from(paths: &[&str]) -> Self {
        Self(paths.iter().map(|path| (*path).to_owned()).collect())
    }

    /// The files and folders that a text names in full.
    pub fn named_in<'a>(&self, text: &'a str) -> Vec<&'a str> {
        names(text).filter(|name| self.0.contains(*name)).collect()
    }

    /// The names in a text that are neither in `named` nor the end of a path in there.
    pub fn missing_from<'a>(&self, text: &'a str, named: &[&str]) -> Vec<&'a str> {
        let is_under = |path: &str| named.iter().any(|one| Path::new(path).starts_with(one));
        let is_short = |name: &str| self.0.iter().any(|path| Path::new(path).ends_with(name) && is_under(path));
        names(text).filter(|name| self.is_path(name) && !self.0.contains(*name) && !is_short(name)).collect()
    }

    /// Returns true if a name is meant to be a path: by its kind, or because it begins with a folder of the repository.
    fn is_path(&self, name: &str) -> bool {
        let first = name.split_once('/').map(|(first, _)| first);
        KINDS.iter().any(|kind| name.ends_with(kind)) || first.is_some_and(|first| self.0.contains(first))
    }
}

/// Quoted words of the letters of paths, listings aside.
fn names(text: &str) -> impl Iterator<Item = &str> {
    let prose = text.split("```").step_by(2);
    let is_name = |word: &&str| {
        let has_letters = word.chars().all(|c| c.is_alphanumeric() || "_.-/".contains(c));
        has_letters && !word.starts_with(BUILT) && !word.is_empty()
    };
    prose.flat_map(quoted).map(|word| word.trim_end_matches('/')).filter(is_name)
}
