// SPDX-License-Identifier: MIT OR Apache-2.0
//! The format changes only with its version: every version that is read has its description and its bytes on file.

use std::string::ToString;
use std::{format, fs, vec};

use zerocopy::IntoBytes as _;

use super::samples::Sample;
use crate::VERSION;
use crate::layout::Kind;
use crate::record::Record;
use crate::schema::{DEVICES, Described, Description, DeviceDescription, Part, STRUCTURES, structures, versions};
use crate::state::{BlockHeader, BlockKind, DeviceKind, Vcpu};
use crate::write::CHECKSUM;

/// Length and CRC-32 of the sample's record in each version.
const GOLDEN: &[(u32, usize, u32)] = &[(3, 1672, 102_443_982), (4, 2216, 3_037_213_020)];

/// A failure means that the format has changed. If the version that you changed has been released, raise `VERSION`,
/// give what is new `since` that version, and add its file and its bytes. Files of older versions never change.
#[test]
fn each_version_is_as_its_file_describes_it() {
    for version in versions() {
        let path = format!("{}/schema/version-{version}.txt", env!("CARGO_MANIFEST_DIR"));
        let described = Description(version).to_string();
        if std::env::var_os("BLESS").is_some() {
            fs::write(&path, &described).expect("the file can be written");
        }
        let on_file = fs::read_to_string(&path).expect("each version has its file");
        assert_eq!(described, on_file, "version {version}: see above this test");
    }
}

/// A failure means that the state of a device has changed, or that there is a new one. Formats on file never change: a
/// state that changes has a new version, and its reader accepts the older ones.
#[test]
fn the_states_of_devices_are_as_their_file_describes_them() {
    let path = format!("{}/schema/devices.txt", env!("CARGO_MANIFEST_DIR"));
    let described = DeviceDescription.to_string();
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, &described).expect("the file can be written");
    }
    assert_eq!(described, fs::read_to_string(&path).expect("the file is there"));
}

#[test]
fn every_kind_of_device_is_described_once() {
    assert!(DEVICES.iter().map(|device| device.kind).eq(DeviceKind::ALL.iter().copied()));
}

#[test]
fn each_version_has_the_bytes_that_it_always_had() {
    for version in versions() {
        let bytes = Sample::new().in_version(version, None, |_| ());
        let golden = GOLDEN.iter().find(|golden| golden.0 == version);
        let found = (version, bytes.len(), CHECKSUM.checksum(&bytes));
        assert_eq!(Some(&found), golden, "see above each_version_is_as_its_file_describes_it");
    }
}

#[test]
fn the_previous_version_is_read_and_what_it_lacks_is_zero() {
    let sample = Sample::new();
    let bytes = sample.in_version(VERSION - 1, None, |_| ());
    let record = Record::open(&bytes).expect("good");
    assert_eq!((record.version, record.build), (VERSION - 1, ""));
    assert!(record.retired.is_empty(), "version 3 has no retired memory");
    assert!(record.assignments.is_empty(), "version 3 has no assignments");
    assert_eq!((record.host, record.clock, record.stamps), (sample.host, sample.clock, Some(sample.stamps)));
    assert!(record.guests.iter().eq(sample.guests.iter().copied()));
    assert!(record.blocks.iter().eq(sample.blocks.iter().copied()));
}

/// The state with which an older image would go on after a way back.
#[test]
fn a_record_goes_from_new_to_old_and_back() {
    let sample = Sample::new();
    let mut again = Sample::new();
    for version in [VERSION, VERSION - 1, VERSION] {
        let bytes = again.in_version(version, None, |_| ());
        let record = Record::open(&bytes).expect("good");
        again.guests = record.guests.iter().collect();
        again.guest_memory = record.guest_memory.iter().collect();
        again.blocks = record.blocks.iter().collect();
    }
    assert_eq!((again.guest_memory, again.blocks), (sample.guest_memory, sample.blocks));
    assert_eq!(again.guests, sample.guests);
}

#[test]
fn every_section_and_block_is_described_once() {
    let times = |part: Part| STRUCTURES.iter().filter(|structure| structure.part == part).count();
    for kind in
        Kind::ALL.iter().copied().filter(|kind| !matches!(kind, Kind::CommandLine | Kind::Firmware | Kind::Build))
    {
        assert_eq!(times(Part::Section(kind)), 1, "{kind:?}");
        let structure = STRUCTURES.iter().find(|structure| structure.part == Part::Section(kind));
        assert_eq!(structure.map(|structure| structure.since), Some(kind.since()), "{kind:?}");
    }
    for kind in BlockKind::ALL {
        assert_eq!(times(Part::Block(*kind)), 1, "{kind:?}");
    }
}

#[test]
fn every_piece_of_a_structure_is_described() {
    for (structure, fields) in structures(VERSION) {
        for field in fields {
            let element = field.type_name.trim_start_matches('[').split([';', ']']).next().unwrap_or_default();
            let is_plain = ["u8", "U16", "U32", "U64", "I64"].contains(&element);
            let is_described = STRUCTURES.iter().any(|other| other.name == element);
            assert!(is_plain || is_described, "{}.{}: {}", structure.name, field.name, field.type_name);
        }
    }
}

#[test]
fn fields_follow_each_other_without_a_gap() {
    for structure in STRUCTURES {
        let mut end = 0;
        for field in structure.fields {
            assert_eq!(field.offset, end, "{}.{}", structure.name, field.name);
            end += field.bytes;
        }
    }
}

#[test]
fn a_field_that_is_missing_reads_as_zero() {
    let whole = vec![0xff; size_of::<BlockHeader>()];
    let header = BlockHeader::read_in(VERSION, &whole).expect("long enough");
    assert!(header.as_bytes().iter().all(|byte| *byte == 0xff));
    assert_eq!(BlockHeader::read_in(VERSION, &whole[1..]), None);
    assert_eq!(BlockHeader::bytes_in(BlockHeader::SINCE - 1), 0);
    assert_eq!(Vcpu::bytes_in(VERSION), size_of::<Vcpu>());
}
