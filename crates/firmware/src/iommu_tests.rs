// SPDX-License-Identifier: MIT OR Apache-2.0
use std::string::ToString;
use std::vec::Vec;

use crate::testing::{Machine, ROOT, resum, table};
use crate::{Fault, Problem, Signature, Tables};

fn faults(tables: &Tables) -> Vec<Problem> {
    let of_iommus = |problem: &&Problem| [Signature::IVRS, Signature::DMAR].contains(&problem.table);
    tables.warnings.iter().filter(of_iommus).copied().collect()
}

#[test]
fn each_table_is_found_where_it_is() {
    let tables = Machine::with_tables(&[table(b"IVRS", &[0; 12])]).discover().unwrap();
    assert_eq!((tables.ivrs, tables.dmar), (Some(ROOT + 0x1000), None));
    let tables = Machine::with_tables(&[table(b"OEM1", &[]), table(b"DMAR", &[0; 12])]).discover().unwrap();
    assert_eq!((tables.ivrs, tables.dmar), (None, Some(ROOT + 0x2000)));
    assert_eq!(faults(&tables), []);
}

#[test]
fn a_machine_without_either_has_no_complaint() {
    let tables = Machine::with_tables(&[]).discover().unwrap();
    assert_eq!((tables.ivrs, tables.dmar), (None, None));
    assert_eq!(faults(&tables), []);
}

#[test]
fn both_tables_are_kept_and_contradict_each_other_once() {
    for order in [[b"IVRS", b"DMAR"], [b"DMAR", b"IVRS"]] {
        let tables = Machine::with_tables(&order.map(|name| table(name, &[0; 12]))).discover().unwrap();
        assert!(tables.ivrs.is_some() && tables.dmar.is_some());
        let [problem] = faults(&tables)[..] else { panic!("{:?}", tables.warnings) };
        assert_eq!(problem.fault, Fault::Contradicts { other: Signature::IVRS });
        assert_eq!(problem.to_string(), "ACPI table DMAR: there is an IVRS, too; only one of the two can be true");
    }
}

#[test]
fn a_corrupt_or_short_table_counts_as_absent_and_the_cost_is_named() {
    let mut corrupt = table(b"IVRS", &[0; 12]);
    corrupt[40] ^= 1;
    let short = resum(table(b"DMAR", &[0; 11]));
    let tables = Machine::with_tables(&[corrupt, short]).discover().unwrap();
    assert_eq!((tables.ivrs, tables.dmar), (None, None));
    let [first, second] = faults(&tables)[..] else { panic!("{:?}", tables.warnings) };
    assert!(matches!(first.fault, Fault::BadChecksum { .. }) && matches!(second.fault, Fault::TooShort { .. }));
    assert!(first.to_string().ends_with(": no device can be assigned to a guest"));
}
