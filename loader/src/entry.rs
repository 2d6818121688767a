// SPDX-License-Identifier: MIT OR Apache-2.0
//! A kernel as a boot loader's configuration states it, and the state that GRUB keeps beside it.

use std::collections::BTreeMap;

/// A kernel that a configuration offers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// The name that a menu shows.
    pub title: String,
    /// Path of its kernel on the file system that has the configuration.
    pub kernel: String,
    /// Paths of the parts of its initial RAM disk, in their order.
    pub initrds: Vec<String>,
    /// Its command line.
    pub cmdline: String,
}

/// The variables of GRUB's environment block (`grubenv`; GNU GRUB manual 2.12, section 15.2).
#[derive(Debug, Default)]
pub struct Environment(BTreeMap<String, String>);

impl Environment {
    /// Reads the lines `NAME=VALUE`; those of another form are not variables.
    pub fn parse(text: &str) -> Self {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        Self(lines.filter_map(|line| line.split_once('=')).map(|(name, value)| (name.into(), value.into())).collect())
    }

    /// Returns a variable's value, unless it is empty or there is none.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Returns the words of a command line, with the values of variables that are words of their own. A variable that
    /// is not here has no value: GRUB computes some when it runs, but only for its own screen.
    pub fn expand<'w>(&self, words: impl IntoIterator<Item = &'w str>) -> String {
        let expanded = words.into_iter().filter_map(|word| match word.strip_prefix('$') {
            Some(name) => self.get(name.trim_start_matches('{').trim_end_matches('}')),
            None => Some(word),
        });
        expanded.collect::<Vec<_>>().join(" ")
    }
}
