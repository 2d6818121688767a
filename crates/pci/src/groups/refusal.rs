// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reasons for which a device cannot belong to an owner.

use alloc::vec::Vec;
use core::fmt;

use crate::Bdf;

/// Devices that a refusal names; it counts the others.
const MAX_NAMED: usize = 4;

/// A device cannot belong to this owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal<O> {
    /// Nothing is known of it.
    Unknown {
        /// Its address.
        place: Bdf,
    },
    /// It is a bridge.
    Bridge {
        /// Its address.
        place: Bdf,
    },
    /// A bridge above it has not been probed.
    Detached {
        /// Its address.
        place: Bdf,
    },
    /// Others of its group belong to another owner.
    Shared {
        /// Its address.
        place: Bdf,
        /// The first of these others, by rising address, with their owners.
        others: Vec<(Bdf, O)>,
        /// The number of all.
        count: usize,
    },
}

impl<O> Refusal<O> {
    /// [`Refusal::Shared`] if there are others.
    pub(super) fn unless_none(place: Bdf, others: impl Iterator<Item = (Bdf, O)>) -> Result<(), Self> {
        let mut others = others.fuse();
        let named: Vec<_> = others.by_ref().take(MAX_NAMED).collect();
        let count = named.len() + others.count();
        if count == 0 { Ok(()) } else { Err(Self::Shared { place, others: named, count }) }
    }
}

impl<O: fmt::Display> fmt::Display for Refusal<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { place } => write!(f, "there is no function {place}; `baton pci` lists those there are"),
            Self::Bridge { place } => {
                write!(f, "{place} is a bridge, which no guest can have; choose a function behind it")
            }
            Self::Detached { place } => {
                let hint = "probe all functions (pci=lazy or pci=all)";
                write!(f, "nothing is known of the bridges above {place}, which must isolate it; {hint}")
            }
            Self::Shared { place, others, count } => {
                write!(f, "{place} is not isolated from ")?;
                for (index, (other, owner)) in others.iter().enumerate() {
                    write!(f, "{}{other} ({owner})", if index == 0 { "" } else { ", " })?;
                }
                let rest = if *count > others.len() { ", …" } else { "" };
                write!(f, "{rest}; assign all of an isolation group to one guest")
            }
        }
    }
}

impl<O: fmt::Debug + fmt::Display> core::error::Error for Refusal<O> {}
