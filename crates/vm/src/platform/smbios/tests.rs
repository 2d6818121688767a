// SPDX-License-Identifier: MIT OR Apache-2.0
use std::string::{String, ToString};
use std::vec;

use proptest::prelude::*;

use super::*;
use crate::platform::acpi;

/// A structure as a kernel reads it.
#[derive(Debug, PartialEq, Eq)]
struct Structure {
    kind: u8,
    handle: u16,
    /// Header included.
    formatted: Vec<u8>,
    strings: Vec<String>,
}

impl Structure {
    /// The string whose number is at this offset.
    fn string(&self, offset: usize) -> &str {
        &self.strings[usize::from(self.formatted[offset]) - 1]
    }
}

/// Reads the tables from the guest's first MiB as a kernel does: scans for the anchor on 16-byte boundaries, follows
/// the entry point, and walks to the end-of-table structure. It shares nothing with the code that it tests.
fn read(first_mebibyte: &[u8]) -> Vec<Structure> {
    let anchor =
        (0xf_0000..0x10_0000).step_by(16).find(|at| &first_mebibyte[*at..][..5] == b"_SM3_").expect("an anchor");
    let entry = &first_mebibyte[anchor..][..usize::from(first_mebibyte[anchor + 6])];
    assert_eq!(entry.iter().map(|byte| u32::from(*byte)).sum::<u32>() % 256, 0, "checksum");
    assert_eq!((entry.len(), entry[7], entry[10]), (0x18, 3, 1));
    let most = u32::from_le_bytes(entry[12..16].try_into().unwrap()) as usize;
    let start = u64::from_le_bytes(entry[16..24].try_into().unwrap()) as usize;
    let (mut rest, mut found) = (&first_mebibyte[start..start + most], vec![]);
    while found.last().is_none_or(|last: &Structure| last.kind != 127) {
        let (formatted, behind) = rest.split_at(usize::from(rest[1]));
        let end = behind.windows(2).position(|pair| pair == [0, 0]).expect("an end");
        let strings = behind[..end].split(|byte| *byte == 0).filter(|text| !text.is_empty());
        found.push(Structure {
            kind: formatted[0],
            handle: u16::from_le_bytes([formatted[2], formatted[3]]),
            formatted: formatted.to_vec(),
            strings: strings.map(|text| String::from_utf8(text.to_vec()).expect("ASCII")).collect(),
        });
        rest = &behind[end + 2..];
    }
    assert!(rest.is_empty(), "{} bytes behind the end", rest.len());
    found
}

/// The first MiB of a guest with these tables.
fn memory(tables: &[u8]) -> Vec<u8> {
    let mut memory = vec![0xcc; 1 << 20];
    memory[layout::SMBIOS_TABLES.0 as usize..][..tables.len()].copy_from_slice(tables);
    memory
}

const UUID: [u8; 16] = [0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff];

fn system<'a>(serial: &'a str, oem_strings: &'a [&'a str]) -> System<'a> {
    System { uuid: UUID, serial, oem_strings }
}

#[test]
fn a_kernel_finds_firmware_system_enclosure_oem_strings_and_boot_status() {
    let strings = ["a=b", "c d"];
    let found = read(&memory(&build(&system("web-1", &strings)).unwrap()));
    let kinds: Vec<_> = found.iter().map(|structure| (structure.kind, structure.handle)).collect();
    assert_eq!(kinds, [(0, 0), (1, 1), (3, 2), (11, 3), (32, 4), (127, 5)]);
    let lengths: Vec<_> = found.iter().map(|structure| structure.formatted.len()).collect();
    assert_eq!(lengths, [0x18, 0x1b, 0x16, 5, 11, 4], "the lengths of version 3.0");
    let [firmware, machine, enclosure, oem, boot, _] = &found[..] else { panic!("{found:?}") };
    assert_eq!((firmware.string(4), firmware.string(5), firmware.string(8)), ("Baton", RELEASE, RELEASE_DATE));
    assert_eq!(firmware.formatted[0x13] & 1 << 4, 1 << 4, "a virtual machine");
    assert_eq!([4, 5, 6, 7].map(|at| machine.string(at)), ["Baton", "Virtual Machine", RELEASE, "web-1"]);
    assert_eq!(enclosure.string(4), "Baton");
    assert_eq!((oem.formatted[4], &oem.strings[..]), (2, &strings.map(str::to_string)[..]));
    assert_eq!(boot.formatted[10], 0);
}

/// The example of section 7.2.1: 00112233-4455-6677-8899-AABBCCDDEEFF.
#[test]
fn the_uuids_first_three_fields_are_little_endian() {
    let found = read(&memory(&build(&system("s", &[])).unwrap()));
    let expected = [0x33, 0x22, 0x11, 0x00, 0x55, 0x44, 0x77, 0x66, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff];
    assert_eq!(found[1].formatted[8..24], expected);
}

#[test]
fn without_oem_strings_their_structure_counts_none() {
    let found = read(&memory(&build(&system("s", &[])).unwrap()));
    assert_eq!((found[3].formatted[4], found[3].strings.len()), (0, 0));
}

#[test]
fn what_no_table_can_state_is_refused_with_the_reason() {
    let refused = |serial: &str, strings: &[&str]| build(&system(serial, strings)).unwrap_err();
    assert_eq!([refused("", &[]), refused("s", &["a", ""])], [SmbiosError::Empty; 2]);
    assert_eq!([refused("s", &["caf\u{e9}"]), refused("a\0", &[])], [SmbiosError::NotAscii; 2]);
    assert_eq!(refused("s", &["x"; 256]), SmbiosError::TooMany);
    assert_eq!(refused("s", &[&"x".repeat(layout::SMBIOS_BYTES)]), SmbiosError::TooLarge);
    let reason = "a string of its SMBIOS tables is not printable ASCII: use no other characters";
    assert_eq!(SmbiosError::NotAscii.to_string(), reason);
}

/// The most that a bundle may state (`bundle::limits`).
#[test]
fn the_longest_serial_number_and_oem_strings_fit() {
    let text = "x".repeat(128);
    assert!(build(&system(&"9".repeat(255), &[text.as_str(); 64])).is_ok());
}

#[test]
fn the_tables_lie_between_those_of_acpi_and_the_reset_vector() {
    const { assert!(layout::ACPI_TABLES.0 + layout::ACPI_TABLES_BYTES as u64 <= layout::SMBIOS_TABLES.0) };
    const { assert!(layout::SMBIOS_TABLES.0 + layout::SMBIOS_BYTES as u64 <= layout::RESET_VECTOR.0) };
    const { assert!(layout::SMBIOS_TABLES.0 >= 0xf_0000 && layout::SMBIOS_TABLES.0.is_multiple_of(16)) };
    let config = acpi::AcpiConfig { vcpus: acpi::MAX_VCPUS, memory_bytes: 1 << 40, address_bits: 48 };
    assert!(acpi::build(&config).unwrap().len() <= layout::ACPI_TABLES_BYTES);
}

proptest! {
    #[test]
    fn any_strings_are_read_back_or_refused(
        uuid: [u8; 16],
        serial in "[ -~]{0,300}|\\PC{0,20}|\\x00",
        strings in prop::collection::vec("[ -~]{0,600}|\\PC{0,9}", 0..40),
    ) {
        let is_good = |text: &String| !text.is_empty() && text.chars().all(|c| (' '..='~').contains(&c));
        let bytes = strings.iter().map(String::len).sum::<usize>();
        let oem_strings: Vec<&str> = strings.iter().map(String::as_str).collect();
        match build(&System { uuid, serial: &serial, oem_strings: &oem_strings }) {
            Ok(tables) => {
                prop_assert!(is_good(&serial) && strings.iter().all(is_good));
                let found = read(&memory(&tables));
                prop_assert_eq!(found[1].string(7), &serial);
                prop_assert_eq!(&found[1].formatted[16..24], &uuid[8..]);
                prop_assert_eq!(&found[3].strings, &strings);
            }
            Err(SmbiosError::TooLarge) => prop_assert!(bytes + 1000 > layout::SMBIOS_BYTES),
            Err(error) => prop_assert!(!(is_good(&serial) && strings.iter().all(is_good)), "{}", error),
        }
    }
}
