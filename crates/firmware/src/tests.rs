// SPDX-License-Identifier: MIT OR Apache-2.0
//! Discovery on whole machines, with complete, missing and corrupt tables.

use std::boxed::Box;
use std::string::ToString;
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use crate::testing::*;
use crate::*;

fn has(tables: &Tables, table: Signature, is_fault: impl Fn(Fault) -> bool) -> bool {
    tables.warnings.iter().any(|problem| problem.table == table && is_fault(problem.fault))
}

#[test]
fn an_ordinary_machine_is_read_without_a_warning() {
    let tables = ordinary().discover().unwrap();
    assert_eq!(tables.warnings.as_slice(), []);
    let cpu = |apic_id| Cpu { apic_id, enabled: true, online_capable: false, node: 0 };
    assert_eq!(tables.cpus.as_slice(), [cpu(0), cpu(1)]);
    assert_eq!(tables.local_apic_address, 0xfee0_0000);
    assert_eq!(tables.io_apics.as_slice(), [IoApic { id: 0, address: 0xfec0_0000, gsi_base: 0 }]);
    assert_eq!(tables.isa_interrupt(0), Override { irq: 0, gsi: 2, is_level: false, is_active_low: false });
    assert_eq!(tables.isa_interrupt(4), Override { irq: 4, gsi: 4, is_level: false, is_active_low: false });
    assert_eq!(tables.isa_interrupt(9), Override { irq: 9, gsi: 9, is_level: true, is_active_low: true });
    assert!(tables.has_8259);
    assert_eq!(tables.hpet_address, Some(0xfed0_0000));
    assert_eq!(tables.pm_timer, Some(PmTimer { port: 0x608, width_bits: 24 }));
    assert_eq!((tables.pm1a_control_port, tables.pm1b_control_port), (Some(0x604), None));
    assert_eq!((tables.sleep_s5_type, tables.sleep_s5_type_b), (Some(5), Some(6)));
    assert_eq!(tables.acpi_enable, Some(SmiCommand { port: 0xb2, value: 2 }));
    assert_eq!(tables.reset_register, Some(ResetRegister { location: Location::Port(0xcf9), value: 0x0f }));
    assert_eq!(tables.mcfg.as_slice(), [Ecam { base: 0xb000_0000, segment: 0, bus_start: 0, bus_end: 255 }]);
}

#[test]
fn every_missing_table_is_a_warning_and_the_defaults_stay() {
    let tables = Machine::with_tables(&[]).discover().unwrap();
    for table in [Signature::MADT, Signature::FADT, Signature::HPET, Signature::MCFG] {
        assert!(has(&tables, table, |fault| fault == Fault::Missing), "{table}");
    }
    assert!(tables.cpus.is_empty());
    assert!(tables.has_8259);
    assert_eq!(tables.local_apic_address, 0xfee0_0000);
}

#[test]
fn a_corrupt_table_costs_only_itself() {
    let mut bad = hpet(0, 0xfed0_0000);
    bad[50] ^= 1;
    let tables = Machine::with_tables(&[bad, mcfg(&[(0xe000_0000, 0, 0, 15)])]).discover().unwrap();
    assert!(has(&tables, Signature::HPET, |fault| matches!(fault, Fault::BadChecksum { .. })));
    assert_eq!(tables.hpet_address, None);
    assert_eq!(tables.mcfg.len(), 1);
}

#[test]
fn the_first_of_two_equal_tables_counts() {
    let tables = Machine::with_tables(&[hpet(0, 0x1000), hpet(0, 0x2000)]).discover().unwrap();
    assert_eq!(tables.hpet_address, Some(0x1000));
    assert!(has(&tables, Signature::HPET, |fault| matches!(fault, Fault::Repeated { .. })));
}

#[test]
fn a_table_that_claims_too_little_or_too_much_is_refused() {
    for (length, is_fault) in [
        (35u32, (|fault| matches!(fault, Fault::TooShort { .. })) as fn(Fault) -> bool),
        (0, |fault| matches!(fault, Fault::TooShort { .. })),
        (MAX_TABLE_BYTES + 1, |fault| matches!(fault, Fault::TooLong { .. })),
        (u32::MAX, |fault| matches!(fault, Fault::TooLong { .. })),
        (MAX_TABLE_BYTES, |fault| matches!(fault, Fault::Unreadable { .. })),
    ] {
        let mut bad = hpet(0, 0xfed0_0000);
        bad[4..8].copy_from_slice(&length.to_le_bytes());
        let tables = Machine::with_tables(&[resum(bad)]).discover().unwrap();
        assert!(has(&tables, Signature::HPET, is_fault), "{length}: {:?}", tables.warnings);
    }
}

#[test]
fn an_event_timer_outside_memory_is_absent() {
    for table in [hpet(1, 0x608), hpet(0, 0)] {
        let tables = Machine::with_tables(&[table]).discover().unwrap();
        assert_eq!(tables.hpet_address, None);
        assert!(has(&tables, Signature::HPET, |fault| matches!(fault, Fault::UnusableRegister { .. })));
    }
}

#[test]
fn configuration_space_that_cannot_be_is_ignored() {
    let entries = [
        (0, 0, 0, 255),
        (0xe000_0001, 0, 0, 255),
        (0xe000_0000, 0, 9, 8),
        (u64::MAX << 20, 0, 0, 1),
        (1 << 36, 3, 4, 5),
    ];
    let tables = Machine::with_tables(&[mcfg(&entries)]).discover().unwrap();
    assert_eq!(tables.mcfg.as_slice(), [Ecam { base: 1 << 36, segment: 3, bus_start: 4, bus_end: 5 }]);
    assert_eq!(tables.warnings.iter().filter(|problem| matches!(problem.fault, Fault::BadEntry { .. })).count(), 4);
}

#[test]
fn configuration_space_beyond_the_list_is_one_warning() {
    let entries: Vec<_> =
        (0..20).map(|segment| (0x1_0000_0000 + (u64::from(segment) << 28), segment, 0, 255)).collect();
    let tables = Machine::with_tables(&[mcfg(&entries)]).discover().unwrap();
    assert_eq!(tables.mcfg.len(), tables::MAX_ECAMS);
    assert_eq!(tables.warnings.iter().filter(|problem| problem.table == Signature::MCFG).count(), 1);
}

#[test]
fn a_second_discovery_discards_the_first() {
    let mut tables = ordinary().discover().unwrap();
    discover(&Machine::with_tables(&[]), None, &mut tables).unwrap();
    let fresh = Machine::with_tables(&[]).discover().unwrap();
    assert_eq!(std::format!("{tables:?}"), std::format!("{fresh:?}"));
}

#[test]
fn clearing_is_starting_again() {
    let mut tables = ordinary().discover().unwrap();
    tables.warnings_dropped = 7;
    tables.clear();
    assert_eq!(std::format!("{tables:?}"), std::format!("{:?}", Tables::new()));
}

#[test]
fn warnings_beyond_the_list_are_counted() {
    let mut tables = Box::new(Tables::new());
    for _ in 0..tables::MAX_WARNINGS + 3 {
        tables.warn(Signature::MADT, Fault::Missing);
    }
    assert_eq!((tables.warnings.len(), tables.warnings_dropped), (tables::MAX_WARNINGS, 3));
}

#[test]
fn problems_name_the_table_the_fault_and_its_cost() {
    let missing = Problem { table: Signature::MADT, fault: Fault::Missing };
    assert_eq!(missing.to_string(), "ACPI table APIC: missing: only the CPU that booted is used");
    let twice = Problem { table: Signature::MADT, fault: Fault::DuplicateApicId { apic_id: 3 } };
    assert_eq!(twice.to_string(), "ACPI table APIC: a second CPU with APIC id 3 is ignored");
    let odd = Problem { table: Signature(*b"\x00A\xff\n"), fault: Fault::Missing };
    assert_eq!(odd.to_string(), "ACPI table \\x00A\\xff\\n: missing");
}

#[test]
fn memory_that_ends_anywhere_is_survived() {
    let machine = ordinary();
    for (&address, bytes) in &machine.pieces {
        for length in 0..bytes.len() {
            let mut cut = machine.clone();
            cut.pieces.get_mut(&address).unwrap().truncate(length);
            match cut.discover_at(Some(RSDP)) {
                Ok(tables) => assert!(!tables.warnings.is_empty(), "piece {address:#x} cut to {length}"),
                Err(_) => assert!(address == RSDP || address == ROOT),
            }
        }
    }
}

#[test]
fn a_table_shortened_with_its_checksum_made_good_is_survived() {
    let machine = ordinary();
    for (&address, bytes) in machine.pieces.range(ROOT..) {
        for length in 36..bytes.len() {
            let mut table = bytes[..length].to_vec();
            table[4..8].copy_from_slice(&(length as u32).to_le_bytes());
            let mut cut = machine.clone();
            cut.pieces.insert(address, resum(table));
            cut.discover_at(Some(RSDP)).unwrap();
        }
    }
}

#[test]
fn any_single_flipped_bit_is_noticed() {
    let machine = ordinary();
    for (&address, bytes) in &machine.pieces {
        for bit in 0..bytes.len() * 8 {
            let mut flipped = machine.clone();
            flipped.pieces.get_mut(&address).unwrap()[bit / 8] ^= 1 << (bit % 8);
            let is_noticed = flipped.discover_at(Some(RSDP)).map_or(true, |tables| !tables.warnings.is_empty());
            assert!(is_noticed, "bit {bit} of the piece at {address:#x}");
        }
    }
}

/// Returns what an ordinary machine's tables state of which those called `name` are changed, and what is wrong with
/// these.
fn with_changed(name: Signature, change: impl Fn(&mut Vec<u8>)) -> (Box<Tables>, Vec<Fault>) {
    let mut machine = ordinary();
    let table = machine.pieces.values_mut().find(|piece| piece.starts_with(&name.0)).unwrap();
    change(table);
    let mut tables = Box::new(Tables::new());
    // Without a root table that is an error, and the table's fault is among the warnings.
    let _ = discover(&machine, None, &mut tables);
    let faults = tables.warnings.iter().filter(|problem| problem.table == name).map(|problem| problem.fault);
    let faults = faults.collect();
    (tables, faults)
}

const EACH: [Signature; 6] =
    [Signature::XSDT, Signature::MADT, Signature::FADT, Signature::HPET, Signature::MCFG, Signature::DSDT];

#[test]
fn each_tables_checksum_is_checked() {
    for name in EACH {
        let (_, faults) = with_changed(name, |table| table[9] ^= 0x10);
        assert!(matches!(faults[..], [Fault::BadChecksum { .. }]), "{name}: {faults:?}");
    }
}

#[test]
fn each_tables_length_is_checked() {
    for name in EACH {
        let with_length = |bytes: u32| {
            with_changed(name, |table| {
                table[4..8].copy_from_slice(&bytes.to_le_bytes());
                *table = resum(core::mem::take(table));
            })
        };
        for bytes in [0, 35, MAX_TABLE_BYTES + 1, u32::MAX] {
            let (_, faults) = with_length(bytes);
            assert!(matches!(faults[..], [Fault::TooShort { .. } | Fault::TooLong { .. }]), "{name}: {faults:?}");
        }
        let (_, faults) = with_length(MAX_TABLE_BYTES);
        assert!(matches!(faults[..], [Fault::Unreadable { .. }]), "{name}: {faults:?}");
    }
}

#[test]
fn each_tables_revision_is_checked_and_a_table_without_one_is_read_all_the_same() {
    for name in EACH {
        for revision in [0, u8::MAX] {
            let (mut tables, faults) = with_changed(name, |table| {
                table[8] = revision;
                *table = resum(core::mem::take(table));
            });
            assert_eq!(faults, if revision == 0 { vec![Fault::NoRevision] } else { vec![] }, "{name}");
            tables.warnings.clear();
            let ordinary = ordinary().discover().unwrap();
            assert_eq!(std::format!("{tables:?}"), std::format!("{ordinary:?}"), "{name}");
        }
    }
}

/// Bounds that hold whatever firmware wrote.
fn check_bounds(tables: &Tables) {
    for (index, cpu) in tables.cpus.iter().enumerate() {
        assert!(cpu.enabled != cpu.online_capable);
        assert!(tables.cpus[..index].iter().all(|other| other.apic_id != cpu.apic_id));
    }
    assert!(tables.overrides.iter().all(|entry| entry.irq < 16));
    assert!(tables.sleep_s5_type.is_none_or(|value| value < 8));
    assert!(tables.sleep_s5_type_b.is_none_or(|value| value < 8));
    assert!(tables.mcfg.iter().all(|ecam| ecam.bus_start <= ecam.bus_end));
    for problem in &tables.warnings {
        assert!(!problem.to_string().is_empty());
    }
}

proptest! {
    #[test]
    fn bytes_changed_under_a_good_checksum_are_survived(
        changes in prop::collection::vec((0usize..8, 36usize..300, any::<u8>()), 1..40),
    ) {
        let mut machine = ordinary();
        let addresses: Vec<u64> = machine.pieces.range(ROOT..).map(|(&address, _)| address).collect();
        for (piece, offset, value) in changes {
            let address = addresses[piece % addresses.len()];
            let mut bytes = machine.pieces.remove(&address).unwrap();
            let length = bytes.len();
            bytes[36 + (offset - 36) % (length - 36)] = value;
            machine.pieces.insert(address, resum(bytes));
        }
        check_bounds(&machine.discover_at(Some(RSDP)).unwrap());
    }

    #[test]
    fn any_body_under_a_good_header_is_survived(
        bodies in prop::collection::vec((0usize..5, prop::collection::vec(any::<u8>(), 0..400)), 0..8),
    ) {
        let names = [b"APIC", b"FACP", b"HPET", b"MCFG", b"DSDT"];
        let made: Vec<_> = bodies.iter().map(|(name, body)| table(names[*name], body)).collect();
        check_bounds(&Machine::with_tables(&made).discover_at(Some(RSDP)).unwrap());
    }

    #[test]
    fn any_low_memory_is_survived(
        bytes in prop::collection::vec(any::<u8>(), 4096),
        hint in any::<Option<u64>>(),
    ) {
        let mut machine = Machine::default();
        machine.pieces.insert(0xf_0000, bytes.clone());
        machine.pieces.insert(0, bytes);
        let mut tables = Box::new(Tables::new());
        prop_assert!(discover(&machine, hint, &mut tables).is_err());
        check_bounds(&tables);
    }
}

#[test]
fn tables_that_point_at_each_other_end() {
    let mut machine = Machine::default();
    let fields = [ROOT, RSDP, ROOT + 0x1000, 0, u64::MAX, u64::MAX - 3];
    machine.put_table(fadt(244, &[(40, &(ROOT as u32).to_le_bytes()), (140, &(ROOT + 0x1000).to_le_bytes())]));
    machine.put_root(&fields);
    let tables = machine.discover().unwrap();
    assert!(has(&tables, Signature::DSDT, |fault| matches!(fault, Fault::WrongSignature { .. })));
    assert!(has(&tables, Signature::XSDT, |fault| matches!(fault, Fault::Unreadable { .. })));
}

#[test]
fn the_root_tables_entries_are_bounded() {
    let mut machine = Machine::default();
    let last = machine.put_table(hpet(0, 0xfed0_0000));
    let mut addresses = vec![0; MAX_TABLES];
    addresses.push(last);
    machine.put_root(&addresses);
    let tables = machine.discover().unwrap();
    assert_eq!(tables.hpet_address, None);
    assert!(has(&tables, Signature::XSDT, |fault| matches!(fault, Fault::TooManyTables { .. })));
}
