// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records that are refused, and why.

use std::vec;

use super::samples::{Sample, assignment, port, retired};
use crate::layout::{
    Kind, MAX_ASSIGNMENTS, MAX_PORTS, MAX_RETIRED, MAX_REVOKED, REQUIRED, RevokedKey, assignment_flag,
};
use crate::record::Record;
use crate::write::{Full, Writer};
use crate::{RecordError, VERSION};

fn refused(bytes: &[u8]) -> RecordError {
    let error = Record::open(bytes).expect_err("refused");
    assert!(!std::format!("{error}").is_empty());
    error
}

/// The sample, spoilt.
fn spoilt(spoil: impl FnOnce(&mut Sample)) -> RecordError {
    let mut sample = Sample::new();
    spoil(&mut sample);
    refused(&sample.record())
}

#[test]
fn a_missing_required_section_is_named() {
    for kind in Kind::ALL.iter().copied().filter(|kind| kind.is_required()) {
        assert_eq!(refused(&Sample::new().without(kind)), RecordError::Missing(kind));
    }
}

#[test]
fn a_section_that_is_there_twice_is_refused() {
    let sample = Sample::new();
    let twice = sample.written(None, |writer| sample.write(writer, Kind::Clock));
    assert_eq!(refused(&twice), RecordError::Duplicate(Kind::Clock));
}

#[test]
fn an_unknown_section_is_passed_over_unless_it_must_be_understood() {
    let sample = Sample::new();
    let optional = sample.written(None, |writer| {
        writer.unknown(77, 0, b"from a later version");
    });
    assert!(Record::open(&optional).is_ok());
    let required = sample.written(None, |writer| {
        writer.unknown(77, REQUIRED, b"from a later version");
    });
    assert_eq!(refused(&required), RecordError::UnknownSection(77));
}

#[test]
fn a_section_has_the_length_that_its_version_gives_it() {
    let sample = Sample::new();
    let clock = zerocopy::IntoBytes::as_bytes(&sample.clock);
    for wrong in [&clock[..20], &[clock, &[1, 2, 3]].concat()[..], &[clock, clock].concat()[..], &[]] {
        let bytes = sample.written(Some(Kind::Clock), |writer| {
            writer.raw(Kind::Clock, wrong);
        });
        assert_eq!(refused(&bytes), RecordError::BadSection(Kind::Clock));
    }
}

#[test]
fn impossible_contents_are_refused() {
    let bad = RecordError::BadSection;
    assert_eq!(spoilt(|sample| sample.host.generation = 1.into()), bad(Kind::Host));
    assert_eq!(spoilt(|sample| sample.host.slot_start = 0x30_1000.into()), bad(Kind::Host));
    assert_eq!(spoilt(|sample| sample.host.slot_bytes = 0.into()), bad(Kind::Host));
    assert_eq!(spoilt(|sample| sample.memory_map.clear()), bad(Kind::MemoryMap));
    assert_eq!(spoilt(|sample| sample.clock.tsc_hz = 0.into()), bad(Kind::Clock));
    assert_eq!(spoilt(|sample| sample.switch_pages.root = 0x1001.into()), bad(Kind::SwitchPages));
    assert_eq!(spoilt(|sample| sample.cpus.clear()), bad(Kind::Cpus));
    assert_eq!(spoilt(|sample| sample.kept[1].start = u64::MAX.into()), bad(Kind::Kept));
    assert_eq!(spoilt(|sample| sample.kept[1].bytes = 17.into()), bad(Kind::Kept));
    assert_eq!(spoilt(|sample| sample.log[0].bytes = 0x3000.into()), bad(Kind::Log));
    assert_eq!(spoilt(|sample| sample.log[0].start = u64::MAX.into()), bad(Kind::Log));
    assert_eq!(spoilt(|sample| sample.retired[0].start = 0x1001.into()), bad(Kind::Retired));
    assert_eq!(spoilt(|sample| sample.retired[0].bytes = 0.into()), bad(Kind::Retired));
    assert_eq!(spoilt(|sample| sample.retired[1].start = (u64::MAX - 0xfff).into()), bad(Kind::Retired));
    assert_eq!(spoilt(|sample| sample.retired = vec![retired(0, 0x1000); MAX_RETIRED + 1]), bad(Kind::Retired));
    let one = |guest, flags| spoilt(|sample| sample.assignments = vec![assignment(guest, 0x0100, flags)]);
    assert_eq!(one("", assignment_flag::IS_ASSIGNED), bad(Kind::Assignments));
    assert_eq!(one("web", 1 << 2), bad(Kind::Assignments));
    assert_eq!(one("web", assignment_flag::WITHOUT_RESET), bad(Kind::Assignments));
    let all = vec![assignment("web", 0, assignment_flag::IS_ASSIGNED); MAX_ASSIGNMENTS + 1];
    assert_eq!(spoilt(|sample| sample.assignments = all), bad(Kind::Assignments));
    assert_eq!(spoilt(|sample| sample.ports = vec![port(0); MAX_PORTS + 1]), bad(Kind::Ports));
    assert_eq!(spoilt(|sample| sample.deadline.seconds = 0.into()), bad(Kind::Deadline));
    assert_eq!(spoilt(|sample| sample.deadline.seconds = 86_401.into()), bad(Kind::Deadline));
    let many = vec![RevokedKey { key: [0; 32] }; MAX_REVOKED + 1];
    assert_eq!(spoilt(|sample| sample.revoked = many), bad(Kind::RevokedKeys));
}

#[test]
fn another_beginning_version_or_length_is_refused() {
    let good = Sample::new().record();
    let changed = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        refused(&bytes)
    };
    assert_eq!(changed(0, b'X'), RecordError::BadMagic);
    assert_eq!(changed(8, 0), RecordError::OtherVersion(0));
    assert_eq!(changed(8, VERSION as u8 + 1), RecordError::OtherVersion(VERSION + 1));
    assert_eq!(changed(12, 1), RecordError::BadChecksum);
    assert_eq!(changed(23, 1), RecordError::BadLength(1 << 56 | good.len() as u64));
    assert_eq!(changed(good.len() - 1, 9), RecordError::BadChecksum);
    assert_eq!(refused(&good[..good.len() - 1]), RecordError::BadLength(good.len() as u64));
    assert_eq!(refused(&[]), RecordError::BadLength(0));
}

#[test]
fn a_record_that_does_not_fit_is_not_written() {
    let sample = Sample::new();
    let length = sample.record().len();
    for room in 0..length {
        let mut bytes = vec![0; room];
        let mut writer = Writer::new(&mut bytes);
        Kind::ALL.iter().for_each(|kind| sample.write(&mut writer, *kind));
        assert_eq!(writer.finish(), Err(Full));
    }
}
