// SPDX-License-Identifier: MIT OR Apache-2.0
use std::string::ToString;
use std::vec::Vec;

use super::*;

fn tables(vcpus: u32) -> Vec<u8> {
    build(&AcpiConfig { vcpus }).unwrap()
}

fn sum(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0, |sum, byte| sum.wrapping_add(*byte))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// The table at a guest-physical address, with its checksum verified.
fn table_at(tables: &[u8], address: u64) -> &[u8] {
    assert_eq!(address % 16, 0);
    let table = &tables[(address - layout::ACPI_TABLES.0) as usize..];
    let table = &table[..u32_at(table, 4) as usize];
    assert_eq!(sum(table), 0, "checksum of {:?}", &table[..4]);
    table
}

fn xsdt(tables: &[u8]) -> &[u8] {
    table_at(tables, u64_at(tables, 24))
}

fn table<'a>(tables: &'a [u8], signature: &[u8]) -> &'a [u8] {
    let xsdt = xsdt(tables);
    let mut entries = (36..xsdt.len()).step_by(8).map(|at| table_at(tables, u64_at(xsdt, at)));
    entries.find(|table| table.starts_with(signature)).unwrap()
}

/// MADT entries by type.
fn madt_entries(tables: &[u8], kind: u8) -> Vec<Vec<u8>> {
    let (mut rest, mut found) = (&table(tables, b"APIC")[44..], Vec::new());
    while let [entry_kind, length, ..] = *rest {
        let (entry, after) = rest.split_at(length.into());
        if entry_kind == kind {
            found.push(entry.to_vec());
        }
        rest = after;
    }
    found
}

#[test]
fn the_rsdp_comes_first_and_both_its_checksums_are_right() {
    let tables = tables(1);
    assert_eq!(&tables[..8], b"RSD PTR ");
    assert_eq!((tables[15], u32_at(&tables, 20)), (2, 36));
    assert_eq!((sum(&tables[..20]), sum(&tables[..36])), (0, 0));
}

#[test]
fn the_xsdt_names_fadt_madt_and_mcfg() {
    let tables = tables(1);
    let xsdt = xsdt(&tables);
    assert_eq!((&xsdt[..4], xsdt.len()), (&b"XSDT"[..], 36 + 3 * 8));
    for signature in [b"FACP", b"APIC", b"MCFG"] {
        table(&tables, signature);
    }
}

#[test]
fn the_fadt_says_hardware_reduced_with_reset_and_sleep_registers() {
    let tables = tables(1);
    let fadt = table(&tables, b"FACP");
    assert_eq!((fadt.len(), fadt[8]), (276, 6));
    assert_eq!(u32_at(fadt, 112), 1 << 20 | 1 << 12 | 1 << 10 | 1 << 5 | 1 << 4 | 1);
    assert_eq!(fadt[109..111], [1 << 2, 0]);
    assert_eq!((&fadt[116..120], u64_at(fadt, 120), fadt[128]), (&[1, 8, 0, 1][..], 0xcf9, 0x0e));
    assert_eq!((&fadt[244..248], u64_at(fadt, 248)), (&[1, 8, 0, 1][..], 0x600));
    assert_eq!((&fadt[256..260], u64_at(fadt, 260)), (&[1, 8, 0, 1][..], 0x601));
}

#[test]
fn the_fadt_leads_to_the_dsdt() {
    let tables = tables(1);
    let dsdt = table_at(&tables, u64_at(table(&tables, b"FACP"), 140));
    assert_eq!((&dsdt[..4], dsdt[8]), (&b"DSDT"[..], 2));
    let contains = |name: &[u8]| dsdt.windows(name.len()).any(|window| window == name);
    for name in ["_S5_", "_SB_", "PCI0", "MBRD", "COM1", "RTC_", "PEVT", "QEMU0001"] {
        assert!(contains(name.as_bytes()), "{name}");
    }
}

#[test]
fn the_madt_has_one_local_apic_per_cpu_and_one_ioapic() {
    let tables = tables(3);
    let madt = table(&tables, b"APIC");
    assert_eq!((u32_at(madt, 36), u32_at(madt, 40)), (0xfee0_0000, 0));
    let expected: Vec<_> = (0..3).map(|id| std::vec![0, 8, id, id, 1, 0, 0, 0]).collect();
    assert_eq!(madt_entries(&tables, 0), expected);
    assert_eq!(madt_entries(&tables, 1), [[1, 12, 0, 0, 0, 0, 0xc0, 0xfe, 0, 0, 0, 0]]);
}

#[test]
fn identifiers_from_255_on_are_x2apic_entries() {
    let tables = tables(257);
    assert_eq!(madt_entries(&tables, 0).len(), 255);
    let expected =
        [[9, 16, 0, 0, 255, 0, 0, 0, 1, 0, 0, 0, 255, 0, 0, 0], [9, 16, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0]];
    assert_eq!(madt_entries(&tables, 9), expected);
}

#[test]
fn the_mcfg_names_bus_0_only() {
    let tables = tables(1);
    let mcfg = table(&tables, b"MCFG");
    assert_eq!((mcfg.len(), u64_at(mcfg, 44), u64_at(mcfg, 52)), (60, 0xe000_0000, 0));
}

#[test]
fn the_most_cpus_fit_and_more_are_refused() {
    assert!(tables(MAX_VCPUS).len() <= layout::ACPI_TABLES_BYTES);
    for vcpus in [0, MAX_VCPUS + 1, u32::MAX] {
        assert_eq!(build(&AcpiConfig { vcpus }), Err(BadVcpuCount { vcpus }));
    }
    let expected = "0 vCPUs cannot be described: give the guest 1 to 4096";
    assert_eq!(BadVcpuCount { vcpus: 0 }.to_string(), expected);
}
