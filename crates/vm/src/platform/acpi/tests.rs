// SPDX-License-Identifier: MIT OR Apache-2.0
use std::string::ToString;
use std::vec::Vec;

use super::*;

fn tables(vcpus: u32) -> Vec<u8> {
    build(&config(vcpus)).unwrap()
}

fn config(vcpus: u32) -> AcpiConfig {
    AcpiConfig { vcpus, memory_bytes: 5 << 30, address_bits: 40 }
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
fn the_fadt_states_hardware_reduced_with_reset_and_sleep_registers() {
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

/// The content of the AML object that begins with `start`, by its package length (ACPI 6.5, section 20.2.4).
fn object<'a>(aml: &'a [u8], start: &[u8], name: &[u8]) -> &'a [u8] {
    let candidates = aml.windows(start.len()).enumerate().filter(|(_, window)| *window == start);
    let mut objects = candidates.filter_map(|(at, _)| {
        let rest = &aml[at + start.len()..];
        let more = usize::from(rest[0] >> 6);
        let low = usize::from(rest[0] & if more == 0 { 0x3f } else { 0x0f });
        let length = (0..more).fold(low, |length, byte| length | usize::from(rest[1 + byte]) << (4 + 8 * byte));
        rest.get(1 + more..length)?.strip_prefix(name)
    });
    objects.next().unwrap_or_else(|| panic!("no object {:?}", std::string::String::from_utf8_lossy(name)))
}

const DEVICE: &[u8] = &[0x5b, 0x82];
const METHOD: &[u8] = &[0x14];

fn dsdt(tables: &[u8]) -> &[u8] {
    table_at(tables, u64_at(table(tables, b"FACP"), 140))
}

#[test]
fn the_event_device_has_level_triggered_lines_and_calls_the_method_of_each() {
    let tables = tables(1);
    let ged = object(dsdt(&tables), DEVICE, b"GED_");
    let contains = |bytes: &[u8]| ged.windows(bytes.len()).any(|window| window == bytes);
    assert!(contains(b"_HID\x0dACPI0013\0"));
    // Extended interrupt: a consumer's, level, active high, exclusive; one, number 9, and one, number 10.
    assert!(contains(&[0x89, 6, 0, 0b0001, 1, 9, 0, 0, 0, 0x89, 6, 0, 0b0001, 1, 10, 0, 0, 0]));
    // One argument, serialized: If (Arg0 == 10) { \_SB.PBEV () } Else { \_SB.PCI0.HPEV () }
    let press = b"\xa0\x0f\x93\x68\x0a\x0a\\\x2e_SB_PBEV";
    let plug = b"\xa1\x10\\\x2f\x03_SB_PCI0HPEV";
    assert_eq!(object(ged, METHOD, b"_EVT"), [&[1 | 1 << 3][..], press, plug].concat());
}

#[test]
fn a_press_of_the_power_button_is_acknowledged_and_then_notified() {
    let tables = tables(1);
    let dsdt = dsdt(&tables);
    // PNP0C0C as EISA writes it.
    assert_eq!(object(dsdt, DEVICE, b"PWRB"), b"\x08_HID\x0c\x41\xd0\x0c\x0c\x08_UID\0");
    // In ports, 1 from 0x620; then a field of 8 bits, in bytes.
    let region = b"\x5b\x80PBRG\x01\x0b\x20\x06\x01\x5b\x81\x0bPBRG\x41PBST\x08";
    assert!(dsdt.windows(region.len()).any(|window| window == region));
    let read = b"\x70PBST\x60\x70\x60PBST";
    let notify = b"\xa0\x0c\x7b\x60\x01\0\x86PWRB\x0a\x80";
    assert_eq!(object(dsdt, METHOD, b"PBEV"), [&[1 << 3][..], read, notify].concat());
}

#[test]
fn each_device_of_the_root_can_be_ejected() {
    let tables = tables(1);
    let root = object(dsdt(&tables), DEVICE, b"PCI0");
    // In ports, 12 from 0x610; then three fields of 32 bits, in doublewords.
    let region = b"\x5b\x80HPRG\x01\x0b\x10\x06\x0a\x0c\x5b\x81\x15HPRG\x43HPCK\x20HPRQ\x20HPEJ\x20";
    assert!(root.windows(region.len()).any(|window| window == region));
    for number in 1..32u8 {
        let name = std::format!("S{number:03}");
        let device = object(root, DEVICE, name.as_bytes());
        let address = [b"\x08_ADR\x0c\0\0", &[number, 0][..]].concat();
        assert!(device.starts_with(&address), "{name}: {device:x?}");
        let eject = object(device, METHOD, b"_EJ0");
        let mut bit = Vec::new();
        acpi_tables::Aml::to_aml_bytes(&(1_u32 << number), &mut bit);
        assert_eq!(eject, [&[1, 0x70][..], &bit, b"HPEJ"].concat(), "{name}");
    }
    assert!(!root.windows(4).any(|window| window == b"S000"), "the host bridge neither comes nor goes");
}

/// `Name (_PRT, Package { Package { device << 16 | 0xffff, INTA, 0, pin }, … })`.
#[test]
fn each_device_of_the_root_has_a_line() {
    let tables = tables(1);
    let root = object(dsdt(&tables), DEVICE, b"PCI0");
    let at = root.windows(4).position(|window| window == b"_PRT").unwrap();
    let mut rest = &root[at + 4..];
    let (head, entries) = rest.split_at(4);
    assert_eq!((head[0], head[1] >> 6, head[3]), (0x12, 1, 31), "a package of 31, its length in two bytes");
    rest = entries;
    for device in 1..32u8 {
        let pin = 16 + (device - 1) % 8;
        let entry = [0x12, 0x0b, 4, 0x0c, 0xff, 0xff, device, 0, 0, 0, 0x0a, pin];
        rest = rest.strip_prefix(&entry[..]).unwrap_or_else(|| panic!("{device}: {:x?}", &rest[..16]));
        assert_eq!(layout::line_of(device), pin);
    }
}

/// Each register is read and acknowledged before any device is notified.
#[test]
fn events_are_acknowledged_and_then_notified() {
    let tables = tables(1);
    let events = object(dsdt(&tables), METHOD, b"HPEV");
    let (flags, mut rest) = events.split_first().unwrap();
    assert_eq!(*flags, 1 << 3);
    for (register, value, has_bus) in [(b"HPCK", 1u8, true), (b"HPRQ", 3, false)] {
        let read = [&[0x70][..], register, &[0x60, 0x70, 0x60], register].concat();
        rest = rest.strip_prefix(&read[..]).unwrap();
        for number in 1..32u8 {
            let name = std::format!("S{number:03}");
            rest = without_notification(rest, 1 << number, name.as_bytes(), value);
        }
        if has_bus {
            rest = without_notification(rest, 1, b"\\\x2e_SB_PCI0", 0);
        }
    }
    assert!(rest.is_empty(), "{rest:x?}");
}

/// The rest of `If (Local0 & bit) { Notify (name, value) }`.
fn without_notification<'a>(aml: &'a [u8], bit: u32, name: &[u8], value: u8) -> &'a [u8] {
    let mut body = std::vec![0x7b, 0x60];
    acpi_tables::Aml::to_aml_bytes(&bit, &mut body);
    body.extend([0, 0x86]);
    body.extend(name);
    acpi_tables::Aml::to_aml_bytes(&value, &mut body);
    let length = body.len() as u8 + 1;
    let wanted = [&[0xa0, length][..], &body].concat();
    aml.strip_prefix(&wanted[..]).unwrap_or_else(|| panic!("no {wanted:x?} at {:x?}", &aml[..aml.len().min(40)]))
}

#[test]
fn tables_of_old_describe_neither_hot_plug_nor_a_power_button() {
    let memory = crate::testing::FakeMemory::new(1 << 20);
    assert!(!describe_hot_plug(&memory) && !describe_lines(&memory) && !describe_power_button(&memory));
    memory.write(layout::ACPI_TABLES, &tables(1)).unwrap();
    assert!(describe_hot_plug(&memory) && describe_lines(&memory) && describe_power_button(&memory));
    assert!(dsdt(&tables(1)).len() + 64 < SEARCHED_BYTES);
    assert!(!describe_hot_plug(&crate::testing::FakeMemory::new(0x1000)), "so small a guest has no tables");
}

/// The 64-bit windows that the DSDT names: their first and last addresses (QWORD Address Space Descriptor, ACPI 6.5,
/// section 6.4.3.5.1).
fn high_windows(config: &AcpiConfig) -> Vec<(u64, u64)> {
    let tables = build(config).unwrap();
    let dsdt = table_at(&tables, u64_at(table(&tables, b"FACP"), 140));
    let starts = dsdt.windows(4).enumerate().filter(|(_, bytes)| *bytes == [0x8a, 0x2b, 0, 0]).map(|(at, _)| at);
    starts
        .map(|at| {
            assert_eq!(dsdt[at + 4] & 0b1100, 0b1100, "both ends are fixed");
            assert_eq!((dsdt[at + 5], u64_at(dsdt, at + 6), u64_at(dsdt, at + 30)), (1, 0, 0), "not cached, as it is");
            let (first, last) = (u64_at(dsdt, at + 14), u64_at(dsdt, at + 22));
            assert_eq!(u64_at(dsdt, at + 38), last - first + 1);
            (first, last)
        })
        .collect()
}

#[test]
fn the_host_bridge_has_a_64_bit_window_where_the_cpus_reach_one() {
    assert_eq!(high_windows(&config(1)), [(6 << 30, (1 << 40) - 1)]);
    assert_eq!(high_windows(&AcpiConfig { address_bits: 57, ..config(1) }), [(6 << 30, (1 << 48) - 1)]);
    assert_eq!(high_windows(&AcpiConfig { memory_bytes: 1 << 40, ..config(1) }), []);
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
        assert_eq!(build(&config(vcpus)), Err(BadVcpuCount { vcpus }));
    }
    let expected = "0 vCPUs cannot be described: give the guest 1 to 4096";
    assert_eq!(BadVcpuCount { vcpus: 0 }.to_string(), expected);
}
