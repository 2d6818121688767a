// SPDX-License-Identifier: MIT OR Apache-2.0
use std::boxed::Box;
use std::string::{String, ToString};
use std::vec::Vec;

use super::*;
use crate::testing::{Machine, local_apic, madt, table};
use crate::{Tables, discover};

/// Identifiers and warnings of a machine with the CPUs 3, 4, 5, 6 and another table behind their table.
fn read(damage: Damage) -> (Vec<u32>, Vec<String>) {
    let cpus: Vec<_> = (3..7).map(|apic_id| local_apic(apic_id, 1)).collect();
    let machine = Machine::with_tables(&[table(b"WAET", &[1; 4]), madt(1, &cpus), table(b"OEM1", b"APIC")]);
    let mut tables = Box::new(Tables::new());
    discover(&Damaged::new(&machine, damage), None, &mut tables).unwrap();
    let ids = tables.cpus.iter().map(|cpu| cpu.apic_id).collect();
    let warnings = tables.warnings.iter().map(ToString::to_string).filter(|warning| warning.contains("APIC"));
    (ids, warnings.collect())
}

#[test]
fn a_missing_table_names_no_cpu() {
    let (ids, warnings) = read(Damage::Missing);
    assert!(ids.is_empty() && warnings[0].contains("missing"), "{ids:?} {warnings:?}");
}

#[test]
fn of_a_truncated_table_the_first_cpu_is_left() {
    let (ids, warnings) = read(Damage::Truncated);
    assert_eq!(ids, [3]);
    assert!(warnings[0].contains("cut short"), "{warnings:?}");
}

#[test]
fn of_two_cpus_of_one_identifier_the_first_is_left() {
    let (ids, warnings) = read(Damage::Duplicate);
    assert_eq!(ids, [3, 5, 6]);
    assert!(warnings[0].contains("APIC id 3"), "{warnings:?}");
}

#[test]
fn an_unused_identifier_is_believed_and_the_broadcast_one_is_not() {
    let (ids, warnings) = read(Damage::Absurd);
    assert_eq!(ids, [3, 0xfe, 6]);
    assert!(warnings[0].contains("0xff"), "{warnings:?}");
}

#[test]
fn without_enough_cpus_nothing_is_changed() {
    let machine = Machine::with_tables(&[madt(1, &[local_apic(3, 1)])]);
    for damage in [Damage::Duplicate, Damage::Absurd] {
        let mut tables = Box::new(Tables::new());
        discover(&Damaged::new(&machine, damage), None, &mut tables).unwrap();
        assert_eq!(tables.cpus.len(), 1);
    }
}
