// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guests that functions are assigned to: by their configurations, and by what the operator of a running host has
//! changed since.
//!
//! Several configurations may name one function, of which the first guest to start has it. A change is stricter: a
//! function that any other guest is assigned, or any function of its isolation group, is refused.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;

use crate::{Bdf, Groups};

mod error;

pub use error::{AssignError, MAX_CHANGES};

/// A function that a guest is assigned: it has the function from its next start on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The function.
    pub place: Bdf,
    /// The guest's name.
    pub guest: String,
    /// True if the guest gets it even where nothing can reset it.
    pub without_reset: bool,
}

/// The limits of a change: what configurations name, and what isolation permits.
#[derive(Clone, Copy, Debug)]
pub struct Limits<'a> {
    /// The functions that the guests' configurations name, in their order.
    pub configured: &'a [Assignment],
    /// The isolation groups of all functions.
    pub groups: &'a Groups,
    /// The most functions of a guest.
    pub most: usize,
}

/// Differences from what the configurations name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Assigned since, oldest first. One that a configuration names, too, counts here.
    assigned: Vec<Assignment>,
    /// Released since, although configurations name them.
    released: Vec<(Bdf, String)>,
}

impl Changes {
    /// No difference.
    pub const fn new() -> Self {
        Self { assigned: Vec::new(), released: Vec::new() }
    }

    /// Returns the number of differences.
    pub fn count(&self) -> usize {
        self.assigned.len() + self.released.len()
    }

    /// Returns the assignments beyond the configurations, oldest first.
    pub fn assigned(&self) -> &[Assignment] {
        &self.assigned
    }

    /// Returns functions that were released though a guest's configuration names them, each with that guest.
    pub fn released(&self) -> &[(Bdf, String)] {
        &self.released
    }

    /// Returns whether a function that a guest's configuration names is still assigned by it: it was neither released,
    /// nor assigned in another way.
    pub fn keeps(&self, place: Bdf, guest: &str) -> bool {
        let is_released = self.released.iter().any(|(other, name)| (*other, name.as_str()) == (place, guest));
        !is_released && !self.assigned.iter().any(|other| other.is(place, guest))
    }

    /// Returns all assignments: of configurations first, then those made since, oldest first.
    pub fn all<'a>(&'a self, configured: &'a [Assignment]) -> impl Iterator<Item = &'a Assignment> + Clone {
        let kept = configured.iter().filter(|assignment| self.keeps(assignment.place, &assignment.guest));
        kept.chain(&self.assigned)
    }

    /// Assigns a function to a guest. A configuration that permits it without a reset goes on doing so.
    ///
    /// # Errors
    /// [`AssignError`]: nothing has changed.
    pub fn assign(&mut self, wanted: Assignment, limits: &Limits<'_>) -> Result<(), AssignError> {
        self.check(&wanted, limits)?;
        let Assignment { place, guest, without_reset } = wanted;
        let named = limits.configured.iter().find(|other| other.is(place, &guest));
        let without_reset = without_reset || named.is_some_and(|named| named.without_reset);
        let is_as_configured = named.is_some_and(|named| named.without_reset == without_reset);
        if !is_as_configured && self.count() >= MAX_CHANGES && self.keeps(place, &guest) {
            return Err(AssignError::TooManyChanges);
        }
        self.released.retain(|(other, name)| (*other, name) != (place, &guest));
        if !is_as_configured {
            self.assigned.push(Assignment { place, guest, without_reset });
        }
        Ok(())
    }

    /// Checks an assignment against all others.
    fn check(&self, wanted: &Assignment, limits: &Limits<'_>) -> Result<(), AssignError> {
        let Assignment { place, guest, .. } = wanted;
        let all = || self.all(limits.configured);
        let at = |place: Bdf| all().filter(move |other| other.place == place).map(|other| &other.guest);
        if at(*place).any(|owner| owner == guest) {
            return Err(AssignError::Assigned { place: *place, guest: guest.clone() });
        }
        if let Some(owner) = at(*place).next() {
            return Err(AssignError::Owned { place: *place, owner: owner.clone() });
        }
        // Of several owners, one that is in the way.
        let owner_of = |place| at(place).find(|owner| *owner != guest).cloned();
        limits.groups.check(*place, guest, owner_of).map_err(AssignError::NotIsolated)?;
        if all().filter(|other| other.guest == *guest).count() >= limits.most {
            return Err(AssignError::TooMany { guest: guest.clone(), most: limits.most });
        }
        Ok(())
    }

    /// Returns the guest that a function is released from: the named one, or the only one that is assigned it.
    ///
    /// # Errors
    /// [`AssignError`]: it is not assigned to that one, to none, or to several.
    pub fn owner(&self, place: Bdf, guest: Option<&str>, configured: &[Assignment]) -> Result<String, AssignError> {
        let mut owners: Vec<&str> = Vec::new();
        for assignment in self.all(configured).filter(|assignment| assignment.place == place) {
            if !owners.contains(&assignment.guest.as_str()) {
                owners.push(&assignment.guest);
            }
        }
        let owned = || owners.iter().map(|owner| (*owner).to_owned()).collect();
        match (guest, owners.as_slice()) {
            (_, []) => Err(AssignError::Free { place }),
            (Some(guest), owners) if owners.contains(&guest) => Ok(guest.to_owned()),
            (Some(guest), _) => Err(AssignError::NotIts { place, guest: guest.to_owned(), owners: owned() }),
            (None, [owner]) => Ok((*owner).to_owned()),
            (None, _) => Err(AssignError::Several { place, owners: owned() }),
        }
    }

    /// Releases a function from a guest that is assigned it ([`Self::owner`]).
    ///
    /// # Errors
    /// [`AssignError::TooManyChanges`]: nothing has changed.
    pub fn release(&mut self, place: Bdf, guest: &str, configured: &[Assignment]) -> Result<(), AssignError> {
        let is_configured = configured.iter().any(|other| other.is(place, guest));
        let is_added = self.assigned.iter().any(|other| other.is(place, guest));
        if is_configured && !is_added && self.keeps(place, guest) && self.count() >= MAX_CHANGES {
            return Err(AssignError::TooManyChanges);
        }
        self.assigned.retain(|other| !other.is(place, guest));
        if is_configured && self.keeps(place, guest) {
            self.released.push((place, guest.to_owned()));
        }
        Ok(())
    }

    /// Takes over an assignment that an image before this one has made. The first one of a guest and a function counts,
    /// and [`MAX_CHANGES`] in all.
    pub fn adopt_assigned(&mut self, assignment: Assignment) {
        if self.keeps(assignment.place, &assignment.guest) && self.count() < MAX_CHANGES {
            self.assigned.push(assignment);
        }
    }

    /// Takes over that a function was released from a guest. As [`Self::adopt_assigned`].
    pub fn adopt_released(&mut self, place: Bdf, guest: String) {
        if self.keeps(place, &guest) && self.count() < MAX_CHANGES {
            self.released.push((place, guest));
        }
    }
}

impl Assignment {
    fn is(&self, place: Bdf, guest: &str) -> bool {
        (self.place, self.guest.as_str()) == (place, guest)
    }
}

#[cfg(test)]
#[path = "assignments_tests.rs"]
mod tests;
