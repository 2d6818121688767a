// SPDX-License-Identifier: MIT OR Apache-2.0
use std::vec;
use std::vec::Vec;

use crate::testing::{Machine, local_apic, madt, srat, srat_local_apic, srat_memory, srat_x2apic, x2apic};
use crate::{Fault, MemoryAffinity, Problem, Signature, Tables};

fn discover(entries: &[Vec<u8>]) -> std::boxed::Box<Tables> {
    let cpus = madt(1, &[local_apic(0, 1), local_apic(1, 1), x2apic(300, 1)]);
    Machine::with_tables(&[srat(entries), cpus]).discover().unwrap()
}

fn faults(tables: &Tables) -> Vec<Fault> {
    let of_srat = tables.warnings.iter().filter(|problem| problem.table == Signature::SRAT);
    of_srat.map(|Problem { fault, .. }| *fault).collect()
}

#[test]
fn memory_and_cpus_are_on_nodes_in_the_order_of_their_domains() {
    let tables = discover(&[
        srat_local_apic(0, 7, 1),
        srat_local_apic(1, 0x0100_0003, 1),
        srat_x2apic(300, 7, 1),
        srat_memory(7, 0, 1 << 30, 1),
        srat_memory(0x0100_0003, 1 << 32, 1 << 30, 3),
    ]);
    assert_eq!(tables.cpus.iter().map(|known| known.node).collect::<Vec<_>>(), [0, 1, 0]);
    assert_eq!(
        tables.memory_affinities.as_slice(),
        [
            MemoryAffinity { base: 0, bytes: 1 << 30, node: 0, is_hot_pluggable: false },
            MemoryAffinity { base: 1 << 32, bytes: 1 << 30, node: 1, is_hot_pluggable: true },
        ]
    );
    assert_eq!(faults(&tables), []);
}

#[test]
fn what_is_disabled_not_volatile_or_of_an_unknown_cpu_is_passed_over() {
    let tables = discover(&[
        srat_local_apic(0, 5, 0),
        srat_local_apic(9, 5, 1),
        srat_memory(5, 0, 4096, 0),
        srat_memory(5, 0, 4096, 5),
        vec![3, 4, 0, 0],
    ]);
    assert!(tables.proximity_domains.is_empty() && tables.memory_affinities.is_empty());
    assert_eq!(faults(&tables), []);
}

#[test]
fn memory_that_cannot_be_is_ignored_and_named() {
    let tables = discover(&[srat_memory(0, 0, 0, 1), srat_memory(0, u64::MAX, 2, 1), srat_memory(0, 0, 4096, 1)]);
    assert_eq!(faults(&tables), [Fault::BadEntry { offset: 48 }, Fault::BadEntry { offset: 88 }]);
    assert_eq!(tables.memory_affinities.len(), 1);
}

#[test]
fn entries_cut_short_end_the_walk() {
    for entry in [vec![1], vec![1, 0], vec![1, 40, 0], vec![0, 1]] {
        let tables = discover(&[srat_memory(0, 0, 4096, 1), entry]);
        assert_eq!(faults(&tables), [Fault::TruncatedEntry { offset: 88 }]);
        assert_eq!(tables.memory_affinities.len(), 1);
    }
    assert_eq!(faults(&discover(&[vec![0, 8, 0, 0, 1, 0, 0, 0]])), [Fault::TruncatedEntry { offset: 48 }]);
}

#[test]
fn more_nodes_than_are_kept_are_named() {
    let entries: Vec<_> = (0..20).map(|node| srat_memory(node, u64::from(node) << 30, 4096, 1)).collect();
    let tables = discover(&entries);
    assert_eq!(tables.proximity_domains.len(), crate::tables::MAX_NODES);
    assert_eq!(faults(&tables).len(), 20 - crate::tables::MAX_NODES);
}

#[test]
fn a_machine_without_the_table_has_one_node_and_no_complaint() {
    let tables = Machine::with_tables(&[madt(1, &[local_apic(0, 1)])]).discover().unwrap();
    assert!(tables.warnings.iter().all(|problem| problem.table != Signature::SRAT));
    assert_eq!(tables.cpus[0].node, 0);
}
