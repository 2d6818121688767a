// SPDX-License-Identifier: MIT OR Apache-2.0
use std::boxed::Box;
use std::vec;
use std::vec::Vec;

use crate::tables::{MAX_CPUS, MAX_IO_APICS, MAX_WARNINGS};
use crate::testing::*;
use crate::{Cpu, Fault, IoApic, Override, Signature, Tables};

fn read(flags: u32, entries: &[Vec<u8>]) -> Box<Tables> {
    Machine::with_tables(&[madt(flags, entries)]).discover().unwrap()
}

fn faults(tables: &Tables) -> Vec<Fault> {
    let of_madt = tables.warnings.iter().filter(|problem| problem.table == Signature::MADT);
    of_madt.map(|problem| problem.fault).collect()
}

#[test]
fn cpus_of_both_kinds_are_listed_in_order() {
    let tables = read(0, &[x2apic(0x1_0000, 1), local_apic(4, 1), x2apic(300, 2)]);
    let expected = [(0x1_0000, true, false), (4, true, false), (300, false, true)];
    let expected = expected.map(|(apic_id, enabled, online_capable)| Cpu { apic_id, enabled, online_capable, node: 0 });
    assert_eq!(tables.cpus.as_slice(), expected);
    assert_eq!(faults(&tables), []);
}

#[test]
fn that_a_cpu_can_come_later_is_believed_of_a_revision_that_can_state_it() {
    for (revision, known) in [(0, 1), (1, 1), (4, 1), (5, 2), (u8::MAX, 2)] {
        let mut table = madt(0, &[local_apic(0, 1), local_apic(1, 2)]);
        table[8] = revision;
        let tables = Machine::with_tables(&[resum(table)]).discover().unwrap();
        assert_eq!(tables.cpus.len(), known, "revision {revision}");
    }
}

#[test]
fn placeholders_are_ignored_silently_whatever_their_identifier() {
    let tables = read(0, &[local_apic(0, 0), local_apic(0xff, 0), x2apic(u32::MAX, 0), local_apic(0, 1)]);
    assert_eq!(tables.cpus.len(), 1);
    assert_eq!(faults(&tables), []);
}

#[test]
fn duplicate_and_broadcast_identifiers_are_ignored_with_a_warning() {
    let tables = read(0, &[local_apic(7, 1), x2apic(7, 1), local_apic(0xff, 1), x2apic(u32::MAX, 1), x2apic(0xff, 1)]);
    assert_eq!(tables.cpus.iter().map(|cpu| cpu.apic_id).collect::<Vec<_>>(), [7, 0xff]);
    let expected = [
        Fault::DuplicateApicId { apic_id: 7 },
        Fault::BroadcastApicId { apic_id: 0xff },
        Fault::BroadcastApicId { apic_id: u32::MAX },
    ];
    assert_eq!(faults(&tables), expected);
}

#[test]
fn cpus_beyond_the_list_are_warned_of_and_what_follows_is_read() {
    let mut entries: Vec<_> = (0..MAX_CPUS as u32 + 2).map(|apic_id| x2apic(apic_id, 1)).collect();
    entries.push(io_apic(0, 0xfec0_0000, 0));
    let tables = read(0, &entries);
    assert_eq!(tables.cpus.len(), MAX_CPUS);
    assert_eq!(tables.io_apics.len(), 1);
    assert!(faults(&tables).iter().all(|fault| matches!(fault, Fault::NoRoom { .. })));
    assert_eq!(faults(&tables).len(), 2);
}

#[test]
fn many_problems_do_not_overflow_the_warnings() {
    let tables = read(0, &vec![local_apic(1, 1); 100]);
    assert_eq!(tables.warnings.len(), MAX_WARNINGS);
    // Three more: the other tables are missing.
    assert_eq!(tables.warnings_dropped as usize, 99 + 3 - MAX_WARNINGS);
}

#[test]
fn an_entry_without_length_ends_the_walk() {
    for length in [0, 1] {
        let tables = read(0, &[local_apic(0, 1), vec![0, length, 0, 0], local_apic(1, 1)]);
        assert_eq!(tables.cpus.len(), 1);
        assert_eq!(faults(&tables), [Fault::TruncatedEntry { offset: 52 }]);
    }
}

#[test]
fn an_entry_past_the_end_of_the_table_is_not_read() {
    let whole = local_apic(1, 1);
    for length in 1..whole.len() {
        let tables = read(0, &[local_apic(0, 1), whole[..length].to_vec()]);
        assert_eq!(tables.cpus.len(), 1);
        assert_eq!(faults(&tables), [Fault::TruncatedEntry { offset: 52 }]);
    }
}

#[test]
fn an_entry_too_short_for_its_kind_is_stepped_over() {
    for kind in [0, 1, 2, 5, 9] {
        let tables = read(0, &[vec![kind, 6, 0, 0, 0, 0], local_apic(1, 1)]);
        assert_eq!(tables.cpus.len(), 1);
        assert_eq!(faults(&tables), [Fault::TruncatedEntry { offset: 44 }]);
    }
}

#[test]
fn unknown_and_longer_entries_are_stepped_over() {
    let longer = [&local_apic(5, 1)[..], &[0; 12]].concat();
    let longer = [&[0, 20], &longer[2..]].concat();
    let tables = read(0, &[[&[0x80, 255], &[0xaa; 253][..]].concat(), longer, local_apic(6, 1)]);
    assert_eq!(tables.cpus.len(), 2);
    assert_eq!(faults(&tables), []);
}

#[test]
fn the_flag_and_the_address_override_are_honoured() {
    let entry = [&[5, 12, 0, 0][..], &0x12_fee0_0000u64.to_le_bytes()].concat();
    let tables = read(0, &[entry]);
    assert!(!tables.has_8259);
    assert_eq!(tables.local_apic_address, 0x12_fee0_0000);
    assert!(read(1, &[]).has_8259);
}

#[test]
fn io_apics_that_collide_are_ignored() {
    let entries =
        [io_apic(1, 0xfec0_0000, 0), io_apic(2, 0xfec0_0000, 24), io_apic(3, 0xfec1_0000, 0), io_apic(4, 0, 48)];
    let tables = read(0, &entries);
    assert_eq!(tables.io_apics.as_slice(), [IoApic { id: 1, address: 0xfec0_0000, gsi_base: 0 }]);
    assert_eq!(faults(&tables).len(), 3);
}

#[test]
fn io_apics_beyond_the_list_are_warned_of() {
    let entries: Vec<_> =
        (0..=MAX_IO_APICS as u32).map(|n| io_apic(n as u8, 0xfec0_0000 + n * 0x1000, n * 24)).collect();
    let tables = read(0, &entries);
    assert_eq!(tables.io_apics.len(), MAX_IO_APICS);
    assert!(matches!(faults(&tables)[..], [Fault::NoRoom { .. }]));
}

#[test]
fn overrides_state_polarity_and_trigger() {
    let entries = [wiring(0, 0, 2, 0), wiring(0, 5, 21, 0b0101), wiring(0, 9, 9, 0b1101), wiring(0, 10, 10, 0b0111)];
    let tables = read(0, &entries);
    let expected = [(0, 2, false, false), (5, 21, false, false), (9, 9, true, false), (10, 10, false, true)];
    let expected = expected.map(|(irq, gsi, is_level, is_active_low)| Override { irq, gsi, is_level, is_active_low });
    assert_eq!(tables.overrides.as_slice(), expected);
}

#[test]
fn overrides_that_cannot_be_are_ignored() {
    let bad = [wiring(1, 3, 3, 0), wiring(0, 16, 3, 0), wiring(0, 3, 3, 0b10), wiring(0, 3, 3, 0b1000)];
    let tables = read(0, &[&bad[..], &[wiring(0, 3, 7, 0), wiring(0, 3, 8, 0)]].concat());
    assert_eq!(tables.overrides.iter().map(|entry| entry.gsi).collect::<Vec<_>>(), [7]);
    assert_eq!(faults(&tables).len(), 5);
}
