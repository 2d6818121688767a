// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bridges above each function, and what passes them without the IOMMU.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use core::mem;

use super::member::{Member, PortKind, Role};

/// The functions of a machine by the bridges above them.
pub(super) struct Topology<'a> {
    members: &'a [Member],
    roots: &'a [(u16, u8)],
    /// By bus (segment and number): the indices of the bridges that lead to it.
    bridges_to: BTreeMap<(u16, u8), Vec<usize>>,
    /// By index: everything behind this bridge is one group with it.
    pub is_shared: Vec<bool>,
    /// Functions of one device, in pairs, that are one group.
    pub entangled: Vec<(usize, usize)>,
}

/// The way from a function upwards.
pub(super) struct Above {
    /// The bridges, by index.
    pub bridges: Vec<usize>,
    /// True if it ends at root buses and nowhere else.
    pub is_complete: bool,
}

impl<'a> Topology<'a> {
    /// Reads the topology of a machine with these root buses.
    pub fn new(members: &'a [Member], roots: &'a [(u16, u8)]) -> Self {
        let mut bridges_to: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        for (index, member) in members.iter().enumerate() {
            member.secondary().into_iter().for_each(|bus| bridges_to.entry(bus).or_default().push(index));
        }
        let is_shared = members.iter().map(|member| match member.role {
            Role::Bridge { .. } => true,
            Role::Port { kind: PortKind::Root | PortKind::Downstream, .. } => !member.isolates(),
            _ => false,
        });
        let is_shared = is_shared.collect();
        let mut topology = Self { members, roots, bridges_to, is_shared, entangled: Vec::new() };
        topology.entangle_devices();
        topology.share_switches();
        topology
    }

    /// A device of several functions, one of them without ACS.
    fn entangle_devices(&mut self) {
        let members = self.members;
        let counts = |index: &usize| members[*index].is_multifunction && members[*index].role != Role::HostBridge;
        let device = |index: usize| {
            let place = members[index].place;
            (place.segment, place.bus, place.device())
        };
        let mut counted: Vec<usize> = (0..members.len()).filter(counts).collect();
        sort::by_key(&mut counted, |&index| (device(index), index));
        for functions in counted.chunk_by(|&one, &other| device(one) == device(other)) {
            if functions.len() == 1 || functions.iter().all(|&function| members[function].isolates()) {
                continue;
            }
            functions.iter().for_each(|&function| self.is_shared[function] = true);
            self.entangled.extend(functions.windows(2).map(|pair| (pair[0], pair[1])));
        }
    }

    /// A switch with something behind its upstream port that is no port downwards, or one that isolates nothing.
    fn share_switches(&mut self) {
        for (index, member) in self.members.iter().enumerate() {
            let isolates = match member.role {
                Role::Port { kind: PortKind::Downstream, .. } => !self.is_shared[index],
                _ => false,
            };
            let above = self.bridges_to.get(&(member.place.segment, member.place.bus)).into_iter().flatten();
            for &bridge in above {
                let is_switch = matches!(self.members[bridge].role, Role::Port { kind: PortKind::Upstream, .. });
                self.is_shared[bridge] |= is_switch && !isolates;
            }
        }
    }

    /// Returns the bridges above a function. Each is entered once, so that loops end.
    pub fn above(&self, member: &Member) -> Above {
        let (mut has_root, mut is_cut) = (false, false);
        let (mut above, mut is_above) = (Vec::new(), vec![false; self.members.len()]);
        let mut buses = Vec::from([(member.place.segment, member.place.bus)]);
        while let Some(bus) = buses.pop() {
            if self.roots.contains(&bus) {
                has_root = true;
                continue;
            }
            let Some(bridges) = self.bridges_to.get(&bus) else {
                is_cut = true;
                continue;
            };
            for &bridge in bridges.iter().filter(|&&bridge| !mem::replace(&mut is_above[bridge], true)) {
                above.push(bridge);
                buses.push((self.members[bridge].place.segment, self.members[bridge].place.bus));
            }
        }
        Above { bridges: above, is_complete: has_root && !is_cut }
    }
}
