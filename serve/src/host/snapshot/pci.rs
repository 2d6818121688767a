// SPDX-License-Identifier: MIT OR Apache-2.0
//! The use of a host's PCI functions, as counts.

use std::collections::BTreeMap;

use wire::PciFunction;

/// Numbers of PCI functions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PciUse {
    /// Bridges, which no guest can have.
    pub bridges: u32,
    /// Functions that no guest has.
    pub free: u32,
    /// Functions that are assigned, by guest.
    pub assigned: BTreeMap<String, u32>,
    /// Functions with a problem, in whatever use.
    pub with_problems: u32,
}

impl PciUse {
    /// Counts these functions.
    pub fn of(functions: &[PciFunction]) -> Self {
        let mut counts = Self::default();
        for function in functions {
            match &function.owner {
                Some(guest) => *counts.assigned.entry(guest.clone()).or_default() += 1,
                None if function.bus_behind.is_some() => counts.bridges += 1,
                None => counts.free += 1,
            }
            counts.with_problems += u32::from(!function.problems.is_empty());
        }
        counts
    }
}
