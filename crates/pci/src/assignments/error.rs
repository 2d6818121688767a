// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reasons for which assignments are not changed.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::Bdf;
use crate::groups::Refusal;

/// The most differences from the configurations that a host keeps, and hands over.
pub const MAX_CHANGES: usize = 256;

/// Reasons for which an assignment is not changed. Prints without the hint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AssignError {
    /// The function is not isolated from another guest's, or is no device.
    NotIsolated(Refusal<String>),
    /// The guest is assigned it already.
    Assigned {
        /// The function.
        place: Bdf,
        /// The guest.
        guest: String,
    },
    /// Another guest is assigned it.
    Owned {
        /// The function.
        place: Bdf,
        /// That guest.
        owner: String,
    },
    /// The guest has as many functions as possible.
    TooMany {
        /// The guest.
        guest: String,
        /// That number.
        most: usize,
    },
    /// The host's list of differences from the configurations is full.
    TooManyChanges,
    /// No guest is assigned the function.
    Free {
        /// The function.
        place: Bdf,
    },
    /// Others than the named guest are assigned the function.
    NotIts {
        /// The function.
        place: Bdf,
        /// The named guest.
        guest: String,
        /// The others.
        owners: Vec<String>,
    },
    /// Several guests are assigned the function, and none was named.
    Several {
        /// The function.
        place: Bdf,
        /// The guests.
        owners: Vec<String>,
    },
}

impl AssignError {
    /// Returns the remedy; empty where the reason names it.
    pub fn hint(&self) -> String {
        match self {
            Self::NotIsolated(_) => String::new(),
            Self::Assigned { guest, .. } => {
                format!("it has the function from its next start on: `baton vm start {guest}`")
            }
            Self::Owned { place, owner } => format!("`baton pci release {place} {owner}` first"),
            Self::TooMany { guest, .. } => format!("release one first: `baton pci release FUNCTION {guest}`"),
            Self::TooManyChanges => "name them in host.toml, and restart with its bundle".into(),
            Self::Free { .. } => "`baton pci` lists functions and their guests".into(),
            Self::NotIts { place, owners, .. } | Self::Several { place, owners } => {
                let owner = owners.first().map_or("GUEST", String::as_str);
                format!("name the guest: `baton pci release {place} {owner}`")
            }
        }
    }
}

impl fmt::Display for AssignError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotIsolated(refusal) => write!(f, "{refusal}"),
            Self::Assigned { place, guest } => {
                write!(f, "PCI function {place} is assigned to guest '{guest}' already")
            }
            Self::Owned { place, owner } => write!(f, "PCI function {place} is assigned to guest '{owner}'"),
            Self::TooMany { guest, most } => {
                write!(f, "guest '{guest}' is assigned {most} PCI functions, the most that are possible")
            }
            Self::TooManyChanges => {
                write!(f, "{MAX_CHANGES} assignments differ from host.toml, the most that the host keeps")
            }
            Self::Free { place } => write!(f, "PCI function {place} is assigned to no guest"),
            Self::NotIts { place, guest, owners } => {
                write!(f, "PCI function {place} is not assigned to guest '{guest}', but to {}", owners.join(", "))
            }
            Self::Several { place, owners } => {
                write!(f, "PCI function {place} is assigned to several guests: {}", owners.join(", "))
            }
        }
    }
}

impl core::error::Error for AssignError {}
