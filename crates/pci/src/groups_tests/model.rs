// SPDX-License-Identifier: MIT OR Apache-2.0
//! Groups beside a model: random trees through which requests are routed hop by hop.

use std::collections::BTreeSet;

use super::*;

/// A tree of functions. Each has its bridge, which stands before it.
#[derive(Debug, Default)]
struct Tree {
    members: Vec<Member>,
    parents: Vec<Option<usize>>,
    buses: u8,
}

/// Decisions, one after the other; zeroes at the end.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn below(&mut self, end: u8) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first % end
    }
}

impl Tree {
    fn grow(choices: &mut Choices<'_>) -> Self {
        let mut tree = Self::default();
        for device in 0..1 + choices.below(5) {
            tree.add_device(None, 0, device, choices, |choices| 1 + choices.below(5));
        }
        tree
    }

    /// A device of one to three functions, each of the kind that is chosen: 0 a device, 1 a root port, 2 a bridge,
    /// 3 a host bridge, 4 a device, 5 a switch's upstream port, 6 a downstream port.
    fn add_device(
        &mut self,
        parent: Option<usize>,
        bus: u8,
        device: u8,
        choices: &mut Choices<'_>,
        choose: impl Fn(&mut Choices<'_>) -> u8,
    ) {
        let count = [1, 1, 2, 3][usize::from(choices.below(4))];
        for function in 0..count {
            let place = Bdf::new(0, bus, device, function).unwrap();
            let (kind, isolates) = (choose(choices), choices.below(2) == 1);
            let mut secondary = || {
                self.buses += 1;
                self.buses
            };
            let role = match kind {
                1 => Role::Port { secondary: secondary(), kind: PortKind::Root },
                2 => Role::Bridge { secondary: secondary() },
                3 => Role::HostBridge,
                5 => Role::Port { secondary: secondary(), kind: PortKind::Upstream },
                6 => Role::Port { secondary: secondary(), kind: PortKind::Downstream },
                _ => Role::Device,
            };
            let isolates = isolates && !matches!(role, Role::Bridge { .. } | Role::HostBridge);
            let index = self.members.len();
            self.members.push(Member { place, is_multifunction: count > 1, ..member("00:00.0", role, isolates) });
            self.parents.push(parent);
            self.add_behind(index, choices);
        }
    }

    fn add_behind(&mut self, bridge: usize, choices: &mut Choices<'_>) {
        let Some((_, bus)) = self.members[bridge].secondary() else { return };
        let (parent, is_deep) = (Some(bridge), bus > 12);
        match self.members[bridge].role {
            Role::Port { kind: PortKind::Upstream, .. } => {
                for device in 0..1 + choices.below(3) {
                    self.add_device(parent, bus, device, choices, |_| 6);
                }
            }
            Role::Bridge { .. } => {
                for device in 0..1 + choices.below(2) {
                    self.add_device(parent, bus, device, choices, |choices| match choices.below(4) {
                        0 if !is_deep => 2,
                        _ => 0,
                    });
                }
            }
            _ if is_deep || choices.below(8) == 7 => {}
            _ => self.add_device(parent, bus, 0, choices, |choices| match choices.below(5) {
                0 => 5,
                1 => 2,
                _ => 0,
            }),
        }
    }

    fn behind(&self, bridge: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.members.len()).filter(move |&index| self.above(index).any(|above| above == bridge))
    }

    fn above(&self, index: usize) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(self.parents[index], |&bridge| self.parents[bridge])
    }

    /// Returns the other functions of its device.
    fn siblings(&self, index: usize) -> impl Iterator<Item = usize> + '_ {
        let of = |index: usize| (self.members[index].place.bus, self.members[index].place.device());
        let counts = move |&other: &usize| {
            other != index && of(other) == of(index) && self.members[other].role != Role::HostBridge
        };
        (0..self.members.len()).filter(counts)
    }

    /// Returns the functions that a request, arrived at a bridge from below, can reach without the root complex.
    fn reach_above(&self, bridge: usize) -> BTreeSet<usize> {
        let isolates = self.members[bridge].isolates();
        let mut reached = BTreeSet::from([bridge]);
        match self.members[bridge].role {
            Role::Bridge { .. } => reached.extend(self.behind(bridge)),
            Role::Port { kind: PortKind::Root, .. } if !isolates => reached.extend(self.behind(bridge)),
            Role::Port { kind: PortKind::Downstream, .. } if !isolates => {
                reached.extend(self.parents[bridge].into_iter().flat_map(|switch| self.behind(switch)));
            }
            _ => {}
        }
        &reached | &self.reach(bridge)
    }

    /// Returns the functions that a request, sent or forwarded upwards by a function, can reach without the root
    /// complex.
    fn reach(&self, from: usize) -> BTreeSet<usize> {
        let mut reached = BTreeSet::from([from]);
        let member = &self.members[from];
        if member.is_multifunction && !member.isolates() && member.role != Role::HostBridge {
            reached.extend(self.siblings(from).flat_map(|sibling| self.behind(sibling).chain([sibling])));
        }
        if let Some(bridge) = self.parents[from] {
            let above = self.reach_above(bridge);
            reached.extend(above.into_iter().filter(|&reached| reached != bridge));
        }
        reached
    }
}

/// Devices that the model's requests connect: by index, the least index of the set.
fn connected(tree: &Tree) -> Vec<usize> {
    let count = tree.members.len();
    let mut set: Vec<usize> = (0..count).collect();
    for from in 0..count {
        // Behind a port there may be a device some day.
        let is_bridge = tree.members[from].secondary().is_some();
        let reached = if is_bridge { tree.reach_above(from) } else { tree.reach(from) };
        let sets: BTreeSet<usize> = reached.iter().map(|&index| set[index]).collect();
        let least = *sets.first().unwrap();
        set.iter_mut().filter(|set| sets.contains(set)).for_each(|set| *set = least);
    }
    set
}

proptest! {
    /// Two devices are in one group if and only if requests connect them that the root complex does not see.
    #[test]
    fn groups_are_what_requests_connect(choices in prop::collection::vec(any::<u8>(), 0..120)) {
        let tree = Tree::grow(&mut Choices(&choices));
        let groups = Groups::new(&tree.members, &ROOTS);
        let connected = connected(&tree);
        let devices: Vec<usize> =
            (0..tree.members.len()).filter(|&index| tree.members[index].role == Role::Device).collect();
        for &one in &devices {
            let number = groups.number_of(tree.members[one].place);
            prop_assert!(number.is_some());
            for &other in &devices {
                let is_together = number == groups.number_of(tree.members[other].place);
                let places = (tree.members[one].place, tree.members[other].place);
                prop_assert_eq!(connected[one] == connected[other], is_together, "{:?} {:?}", places, tree.members);
            }
        }
    }
}
