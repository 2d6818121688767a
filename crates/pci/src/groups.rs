// SPDX-License-Identifier: MIT OR Apache-2.0
//! Isolation groups: functions that reach each other without the IOMMU, or that it cannot distinguish, and
//! that therefore have one owner.
//!
//! | functions | one group, because | source |
//! |---|---|---|
//! | behind a bridge to conventional PCI | they share the bus, and the bridge's requester identifier | PCI-to-PCI Bridge 1.2; PCI Express to PCI/PCI-X Bridge 1.0, 2.3 |
//! | behind a root port without ACS | it may send their requests down again | PCI Express Base 5.0, 6.12 |
//! | behind a switch of which a port downwards has no ACS | the switch routes that port's requests to the others | 6.12.1.1 |
//! | of a device with several functions, one of them without ACS | the device routes that one's requests to the others, and to what is behind them | 6.12.1.2 |
//!
//! ACS is what is enabled, not what is possible ([`Member::enable_isolation`]). Root ports of different devices are
//! taken to be isolated from each other, as Linux takes them; no register states that. Unlike in Linux, a neighbour
//! with ACS is in the group of one without: only the one that sends decides about the way.
//!
//! Bridges and the host bridge are in no group: no guest can have them. Their registers are untrusted: a bus that two
//! bridges lead to is behind both, no bridge leads to a root bus, and a loop ends where it was entered.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use crate::Bdf;

mod member;
mod refusal;
mod sets;
mod topology;

pub use member::{Member, PortKind, Role};
pub use refusal::Refusal;
use sets::Sets;
use topology::Topology;

/// The isolation groups of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Groups {
    /// Devices, group by group, each by rising address.
    devices: Vec<Bdf>,
    /// Each group's devices. A group's number is its index: groups are in the order of their first devices.
    groups: Vec<Range<usize>>,
    memberships: BTreeMap<Bdf, Membership>,
}

/// A function's membership in the groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Membership {
    /// It is in the group with this number.
    Grouped(u32),
    /// No guest can have it.
    IsBridge,
    /// A bridge above it is not known.
    IsDetached,
}

impl Groups {
    /// Forms the groups of a machine with the functions `members`, below the root buses (segment and bus) `roots`.
    pub fn new(members: &[Member], roots: &[(u16, u8)]) -> Self {
        let topology = Topology::new(members, roots);
        let mut sets = Sets::new(members.len());
        let mut memberships = BTreeMap::new();
        let mut counted = Vec::new();
        for (index, member) in members.iter().enumerate() {
            let above = topology.above(member);
            for &bridge in above.bridges.iter().filter(|&&bridge| topology.is_shared[bridge]) {
                sets.unite(index, bridge);
            }
            if member.role != Role::Device {
                memberships.insert(member.place, Membership::IsBridge);
            } else if above.is_complete {
                counted.push(index);
            } else {
                memberships.insert(member.place, Membership::IsDetached);
            }
        }
        topology.entangled.iter().for_each(|&(one, other)| sets.unite(one, other));
        Self::number(members, counted, sets, memberships)
    }

    fn number(
        members: &[Member],
        mut counted: Vec<usize>,
        mut sets: Sets,
        mut memberships: BTreeMap<Bdf, Membership>,
    ) -> Self {
        sort::by_key(&mut counted, |&index| members[index].place);
        let mut by_set = vec![Vec::new(); members.len()];
        let mut order = Vec::new();
        for index in counted {
            let set = sets.find(index);
            let devices = &mut by_set[set];
            if devices.is_empty() {
                order.push(set);
            }
            devices.push(members[index].place);
        }
        let (mut devices, mut groups) = (Vec::new(), Vec::new());
        for (number, set) in order.iter().enumerate() {
            let start = devices.len();
            devices.append(&mut by_set[*set]);
            groups.push(start..devices.len());
            memberships.extend(devices[start..].iter().map(|&place| (place, Membership::Grouped(number as u32))));
        }
        Self { devices, groups, memberships }
    }

    /// Returns the number of a device's group, from 0 on by rising address of their first devices; `None` for bridges
    /// and for what is not known.
    pub fn number_of(&self, place: Bdf) -> Option<u32> {
        match self.memberships.get(&place) {
            Some(Membership::Grouped(number)) => Some(*number),
            _ => None,
        }
    }

    /// Returns the devices of a device's group, itself included, by rising address; none for bridges and for what is
    /// not known.
    pub fn of(&self, place: Bdf) -> &[Bdf] {
        let range = self.number_of(place).and_then(|number| self.groups.get(number as usize));
        range.and_then(|range| self.devices.get(range.clone())).unwrap_or_default()
    }

    /// Checks that a device can belong to `owner`: none of its group belongs to another.
    ///
    /// # Errors
    /// [`Refusal`]: it is no device, or names those that belong to another owner.
    pub fn check<O: PartialEq>(
        &self,
        place: Bdf,
        owner: &O,
        owner_of: impl Fn(Bdf) -> Option<O>,
    ) -> Result<(), Refusal<O>> {
        match self.memberships.get(&place) {
            Some(Membership::Grouped(_)) => {}
            Some(Membership::IsBridge) => return Err(Refusal::Bridge { place }),
            Some(Membership::IsDetached) => return Err(Refusal::Detached { place }),
            None => return Err(Refusal::Unknown { place }),
        }
        let neighbours = self.of(place).iter().copied().filter(|&other| other != place);
        let with_owner = neighbours.filter_map(|other| owner_of(other).map(|owner| (other, owner)));
        Refusal::unless_none(place, with_owner.filter(|(_, other)| other != owner))
    }
}

#[cfg(test)]
#[path = "groups_tests.rs"]
mod tests;
