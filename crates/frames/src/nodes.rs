// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory of each NUMA node, as far as firmware and the memory map agree.

use core::fmt;

use arrayvec::ArrayVec;
use units::{PAGE_BYTES, PhysAddr, PhysRange};

/// A NUMA node: a number from 0, not firmware's proximity domain.
pub type Node = u8;
/// Stretches of memory on nodes that are kept.
pub const MAXIMUM_NODE_RANGES: usize = 32;
/// Contradictions that are kept; more are only counted.
pub const MAXIMUM_CONTRADICTIONS: usize = 8;

/// Memory that is on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeRange {
    /// Range of the memory.
    pub range: PhysRange,
    /// On which node.
    pub node: Node,
}

/// All memory of which the node is known. Sorted, disjoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeMap(ArrayVec<NodeRange, MAXIMUM_NODE_RANGES>);

/// A statement of firmware about nodes that is impossible, or that the memory map contradicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contradiction {
    /// Two nodes claim this memory; it stays with the first.
    TwoNodes {
        /// Range of the memory.
        range: PhysRange,
        /// Its owner.
        first: Node,
        /// The node that does not get it.
        second: Node,
    },
    /// A node's memory of which the memory map knows nothing.
    NotInMap(NodeRange),
    /// Usable memory that no node claims.
    OnNoNode(PhysRange),
    /// More stretches than are kept: this one is on no node.
    NoRoom(NodeRange),
}

impl fmt::Display for Contradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TwoNodes { range, first, second } => {
                write!(f, "memory {range} is on nodes {first} and {second} by the SRAT: it counts as node {first}'s")
            }
            Self::NotInMap(NodeRange { range, node }) => {
                write!(f, "memory {range}, on node {node} by the SRAT, is not in the memory map: ignored")
            }
            Self::OnNoNode(range) => write!(f, "memory {range} is on no node: it is used if no nearer memory is free"),
            Self::NoRoom(NodeRange { range, node }) => {
                write!(f, "memory {range} of node {node} is one stretch too many: it counts as on no node")
            }
        }
    }
}

/// Contradictions that were met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contradictions {
    kept: ArrayVec<Contradiction, MAXIMUM_CONTRADICTIONS>,
    more: usize,
}

impl Contradictions {
    /// Returns the first contradictions.
    pub fn kept(&self) -> &[Contradiction] {
        &self.kept
    }

    /// Returns how many there were beyond those.
    pub fn more(&self) -> usize {
        self.more
    }

    fn add(&mut self, contradiction: Contradiction) {
        self.more += usize::from(self.kept.try_push(contradiction).is_err());
    }
}

impl NodeMap {
    /// Returns a map without nodes.
    pub const fn new() -> Self {
        Self(ArrayVec::new_const())
    }

    /// Returns the nodes that `claims` state for the memory in `map`, in whole frames. Without any claim there is
    /// nothing to contradict.
    pub fn build(claims: &[NodeRange], map: &[PhysRange]) -> (Self, Contradictions) {
        let (mut nodes, mut contradictions) = (Self::new(), Contradictions::default());
        for claim in claims {
            let claim = NodeRange { range: claim.range.aligned_inwards(PAGE_BYTES), ..*claim };
            if !map.iter().any(|usable| usable.intersection(claim.range).is_some()) {
                contradictions.add(Contradiction::NotInMap(claim));
                continue;
            }
            nodes.add(claim, &mut contradictions);
        }
        if !nodes.0.is_empty() {
            for usable in map {
                let strangers = nodes.parts(*usable).filter(|(_, node)| node.is_none());
                strangers.for_each(|(range, _)| contradictions.add(Contradiction::OnNoNode(range)));
            }
        }
        (nodes, contradictions)
    }

    /// Adds the parts of the claim that no other claim has.
    fn add(&mut self, claim: NodeRange, contradictions: &mut Contradictions) {
        let mut fresh: ArrayVec<PhysRange, { MAXIMUM_NODE_RANGES + 1 }> = ArrayVec::new();
        for (range, owner) in self.parts(claim.range) {
            match owner {
                None => fresh.push(range),
                Some(first) if first != claim.node => {
                    contradictions.add(Contradiction::TwoNodes { range, first, second: claim.node });
                }
                Some(_) => {}
            }
        }
        for range in fresh {
            let part = NodeRange { range, node: claim.node };
            let at = self.0.partition_point(|known| known.range.end() <= range.start());
            if self.0.try_insert(at, part).is_err() {
                contradictions.add(Contradiction::NoRoom(part));
            }
        }
    }

    /// Returns every stretch, by rising address.
    pub fn ranges(&self) -> &[NodeRange] {
        &self.0
    }

    /// Returns how many nodes there are: one more than the highest number.
    pub fn count(&self) -> usize {
        self.0.iter().map(|known| usize::from(known.node) + 1).max().unwrap_or(0)
    }

    /// Returns the node of the frame at this address.
    pub fn node_of(&self, address: PhysAddr) -> Option<Node> {
        let at = self.0.partition_point(|known| known.range.end() <= address);
        self.0.get(at).filter(|known| known.range.contains(address)).map(|known| known.node)
    }

    /// Parts a range where its node changes.
    pub fn parts(&self, range: PhysRange) -> impl Iterator<Item = (PhysRange, Option<Node>)> + '_ {
        let mut at = range.start();
        core::iter::from_fn(move || {
            let rest = PhysRange::new(at, range.end()).filter(|rest| !rest.is_empty())?;
            let index = self.0.partition_point(|known| known.range.end() <= at);
            let part = match self.0.get(index).and_then(|known| Some((known.range.intersection(rest)?, known.node))) {
                Some((inside, node)) if inside.start() == at => (inside, Some(node)),
                Some((inside, _)) => (PhysRange::new(at, inside.start())?, None),
                None => (rest, None),
            };
            at = part.0.end();
            Some(part)
        })
    }

    /// Returns how far memory is from a node: 0 all of it there, 1 all of it on one other, 2 on several.
    pub(crate) fn distance(&self, range: PhysRange, wanted: Option<Node>) -> u8 {
        let mut nodes = self.parts(range).map(|(_, node)| node);
        let first = nodes.next().flatten();
        match wanted {
            _ if nodes.any(|node| node != first) => 2,
            Some(wanted) if first != Some(wanted) => 1,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests;
