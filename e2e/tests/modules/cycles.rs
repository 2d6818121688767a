// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cycles of imports: through each import that is part of one, the shortest.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;

use crate::resolve::Imports;

/// Files of which each imports names of the next, and the last of the first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub struct Cycle {
    files: Vec<String>,
    names: Vec<Vec<String>>,
}

/// By importing file, the imported ones.
type Arrows<'a> = BTreeMap<&'a str, Vec<&'a str>>;

pub fn cycles(imports: &Imports) -> BTreeSet<Cycle> {
    let mut arrows = Arrows::new();
    imports.keys().for_each(|(from, to)| arrows.entry(from).or_default().push(to));
    imports
        .keys()
        .filter_map(|(from, to)| shortest_path(&arrows, to, from))
        .map(|path| Cycle::new(imports, &path))
        .collect()
}

fn shortest_path<'a>(arrows: &Arrows<'a>, from: &'a str, to: &str) -> Option<Vec<&'a str>> {
    let mut reached = BTreeMap::from([(from, from)]);
    let mut queue = VecDeque::from([from]);
    while let Some(file) = queue.pop_front() {
        if file == to {
            return Some(way_back(&reached, file));
        }
        for next in arrows.get(file).into_iter().flatten().copied() {
            reached.entry(next).or_insert_with(|| {
                queue.push_back(next);
                file
            });
        }
    }
    None
}

fn way_back<'a>(reached: &BTreeMap<&'a str, &'a str>, end: &'a str) -> Vec<&'a str> {
    let mut path = vec![end];
    while let Some(previous) = reached.get(path[path.len() - 1]).filter(|previous| !path.contains(*previous)) {
        path.push(previous);
    }
    path.reverse();
    path
}

impl Cycle {
    /// Returns whether all its files are in one of these parts: their paths begin with its name.
    pub fn is_within(&self, parts: &[&str]) -> bool {
        parts.iter().any(|part| self.files.iter().all(|file| file.starts_with(part)))
    }

    /// Begins with the first file by name, so that a cycle is the same from wherever it is found.
    fn new(imports: &Imports, path: &[&str]) -> Self {
        let mut files: Vec<String> = path.iter().map(|file| (*file).to_owned()).collect();
        let first = (0..files.len()).min_by_key(|index| &files[*index]).unwrap_or_default();
        files.rotate_left(first);
        let next = |index: usize| files[(index + 1) % files.len()].clone();
        let names = |index: usize| imports[&(files[index].clone(), next(index))].iter().cloned().collect();
        Self { names: (0..files.len()).map(names).collect(), files }
    }
}

impl fmt::Display for Cycle {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        for (file, names) in self.files.iter().zip(&self.names) {
            write!(f, "{file} -({})-> ", names.join(", "))?;
        }
        f.write_str(&self.files[0])
    }
}
