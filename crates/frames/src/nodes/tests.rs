// SPDX-License-Identifier: MIT OR Apache-2.0
use std::string::ToString;
use std::vec::Vec;

use proptest::prelude::*;
use units::{GIB, MIB};

use super::*;

fn range(start: u64, end: u64) -> PhysRange {
    PhysRange::new(PhysAddr(start), PhysAddr(end)).unwrap()
}

fn claim(node: Node, start: u64, end: u64) -> NodeRange {
    NodeRange { range: range(start, end), node }
}

fn pc() -> [PhysRange; 3] {
    [range(0, 640 << 10), range(MIB, 3 * GIB), range(4 * GIB, 9 * GIB)]
}

fn build(claims: &[NodeRange]) -> (NodeMap, Vec<Contradiction>) {
    let (nodes, contradictions) = NodeMap::build(claims, &pc());
    (nodes, contradictions.kept().to_vec())
}

#[test]
fn memory_is_on_the_node_that_claims_it() {
    let (nodes, contradictions) =
        build(&[claim(0, 0, 3 * GIB), claim(1, 4 * GIB, 6 * GIB), claim(0, 6 * GIB, 9 * GIB)]);
    assert!(contradictions.is_empty());
    assert_eq!(
        [0, GIB, 5 * GIB, 8 * GIB, 3 * GIB].map(|at| nodes.node_of(PhysAddr(at))),
        [Some(0), Some(0), Some(1), Some(0), None]
    );
    assert_eq!(nodes.count(), 2);
    let distances = |wanted| [range(GIB, 2 * GIB), range(5 * GIB, 7 * GIB)].map(|range| nodes.distance(range, wanted));
    assert_eq!([distances(None), distances(Some(0)), distances(Some(1))], [[0, 2], [0, 2], [1, 2]]);
}

#[test]
fn where_two_nodes_claim_memory_the_first_has_it() {
    let (nodes, contradictions) = build(&[claim(0, 0, 5 * GIB), claim(1, 4 * GIB, 9 * GIB)]);
    let range = range(4 * GIB, 5 * GIB);
    assert_eq!(contradictions, [Contradiction::TwoNodes { range, first: 0, second: 1 }]);
    let text = "memory 0x100000000-0x13fffffff (1 GiB) is on nodes 0 and 1 by the SRAT: it counts as node 0's";
    assert_eq!(contradictions[0].to_string(), text);
    assert_eq!([4, 5].map(|at| nodes.node_of(PhysAddr(at * GIB))), [Some(0), Some(1)]);
}

#[test]
fn what_the_memory_map_denies_is_named() {
    let (nodes, contradictions) = build(&[claim(0, 0, 8 * GIB), claim(1, 100 * GIB, 101 * GIB)]);
    let expected =
        [Contradiction::NotInMap(claim(1, 100 * GIB, 101 * GIB)), Contradiction::OnNoNode(range(8 * GIB, 9 * GIB))];
    assert_eq!(contradictions, expected);
    assert_eq!(nodes.count(), 1);
}

#[test]
fn without_claims_nothing_is_contradicted() {
    assert_eq!(build(&[]), (NodeMap::new(), Vec::new()));
    assert_eq!(NodeMap::new().distance(range(0, GIB), Some(3)), 1);
    assert_eq!(NodeMap::new().distance(range(0, GIB), None), 0);
}

#[test]
fn more_stretches_than_are_kept_are_named_and_counted() {
    let claims: Vec<_> = (0..100).map(|at| claim((at % 2) as Node, at << 20, (at + 1) << 20)).collect();
    let (nodes, contradictions) = NodeMap::build(&claims, &[range(0, 100 * MIB)]);
    assert_eq!(nodes.ranges().len(), MAXIMUM_NODE_RANGES);
    assert_eq!(contradictions.kept().len() + contradictions.more(), 100 - MAXIMUM_NODE_RANGES + 1);
    assert_eq!(contradictions.kept()[0], Contradiction::NoRoom(claim(0, 32 << 20, 33 << 20)));
}

proptest! {
    #[test]
    fn every_address_has_the_node_of_its_first_claim(claims in prop::collection::vec((0u8..4, 0u64..64, 1u64..32), 0..12)) {
        let claims: Vec<_> = claims.into_iter().map(|(node, start, pages)| claim(node, start << 12, (start + pages) << 12)).collect();
        let (nodes, contradictions) = NodeMap::build(&claims, &[range(0, 128 << 12)]);
        prop_assert!(nodes.ranges().windows(2).all(|pair| pair[0].range.end() <= pair[1].range.start()));
        let first = |at: PhysAddr| claims.iter().find(|claim| claim.range.contains(at)).map(|claim| claim.node);
        let is_full = contradictions.kept().iter().any(|contradiction| matches!(contradiction, Contradiction::NoRoom(_)));
        for page in 0..128 {
            let at = PhysAddr(page << 12);
            prop_assert!(is_full || nodes.node_of(at) == first(at));
        }
    }
}
