// SPDX-License-Identifier: MIT OR Apache-2.0
//! Clients that follow consoles, and the guests that they follow: the host is asked for these alone.

use std::collections::{BTreeMap, BTreeSet};

/// The most guests that the host is asked for by their names: a request has to fit a frame.
const MAX_NAMES: usize = 64;

/// The guests whose output is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// All guests.
    pub is_all: bool,
    /// These guests.
    pub names: BTreeSet<String>,
}

impl Choice {
    /// Returns whether it has this guest.
    pub fn has(&self, guest: &str) -> bool {
        self.is_all || self.names.contains(guest)
    }

    /// Returns whether it has every guest that the other one has.
    pub fn includes(&self, other: &Self) -> bool {
        self.is_all || !other.is_all && other.names.is_subset(&self.names)
    }
}

/// The number of clients that follow each guest.
#[derive(Debug, Default)]
pub(super) struct Followers {
    of_all: usize,
    of: BTreeMap<String, usize>,
}

impl Followers {
    /// Adds a client that follows these guests; `None`: all.
    pub fn add(&mut self, names: Option<&[String]>) {
        match names {
            Some(names) => names.iter().for_each(|name| *self.of.entry(name.clone()).or_default() += 1),
            None => self.of_all += 1,
        }
    }

    /// Removes one that was added.
    pub fn remove(&mut self, names: Option<&[String]>) {
        let Some(names) = names else { return self.of_all -= 1 };
        for name in names {
            let count = self.of.get_mut(name).map_or(0, |count| {
                *count -= 1;
                *count
            });
            if count == 0 {
                self.of.remove(name);
            }
        }
    }

    /// Returns the number of clients that follow this guest.
    pub fn count(&self, guest: &str) -> usize {
        self.of_all + self.of.get(guest).copied().unwrap_or_default()
    }

    /// Returns the guests that are followed.
    pub fn choice(&self) -> Choice {
        match self.of_all > 0 || self.of.len() > MAX_NAMES {
            true => Choice { is_all: true, names: BTreeSet::new() },
            false => Choice { is_all: false, names: self.of.keys().cloned().collect() },
        }
    }
}
