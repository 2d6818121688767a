// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records and images that are as they should be; what is wrong with others is in the modules below.

mod guests;
mod images;
mod properties;
mod records;
mod samples;
mod schema;

use crate::layout::{Kind, Purpose};
use crate::record::Record;
use samples::Sample;

#[test]
fn what_was_written_is_read() {
    let sample = Sample::new();
    let bytes = sample.record();
    let record = Record::open(&bytes).expect("good");
    assert_eq!((record.host, record.clock, record.switch_pages), (sample.host, sample.clock, sample.switch_pages));
    assert!(record.memory_map.iter().eq(sample.memory_map.iter().copied()));
    assert!(record.modules.iter().eq(sample.modules.iter().copied()));
    assert!(record.cpus.iter().eq(sample.cpus.iter().copied()));
    assert!(record.kept.iter().eq(sample.kept.iter().copied()));
    assert_eq!(record.command_line, sample.command_line);
    assert_eq!(record.rsdp.map(|rsdp| rsdp.0), sample.rsdp);
    assert_eq!((record.stamps, record.control), (Some(sample.stamps), Some(sample.control)));
    assert!(record.log.iter().eq(sample.log.iter().copied()));
    assert!(record.guests.iter().eq(sample.guests.iter().copied()));
    assert!(record.guest_memory.iter().eq(sample.guest_memory.iter().copied()));
    assert!(record.blocks.iter().eq(sample.blocks.iter().copied()));
    assert_eq!(record.checked, Some(sample.checked));
    assert!(record.retired.iter().eq(sample.retired.iter().copied()));
    assert!(record.assignments.iter().eq(sample.assignments.iter().copied()));
    assert!(record.ports.iter().eq(sample.ports.iter().copied()));
    assert_eq!(record.deadline, Some(sample.deadline));
    assert!(record.revoked.iter().eq(sample.revoked.iter().copied()));
    assert_eq!(record.signer, (record.version >= 4).then_some(sample.signer));
    assert_eq!(record.retired_ranges().count(), sample.retired.len());
    assert_eq!(record.slot().start().0, sample.host.slot_start.get());
    assert_eq!(record.kept_ranges().count(), sample.kept.len() + sample.guest_memory.len());
    assert_eq!(record.kept_for(Purpose::Log).count(), 1);
}

#[test]
fn what_may_be_passed_over_may_be_missing() {
    for left_out in [Kind::Stamps, Kind::Control, Kind::Log, Kind::Checked, Kind::Retired, Kind::Assignments] {
        let bytes = Sample::new().without(left_out);
        let record = Record::open(&bytes).expect("good without it");
        let missing = [
            record.stamps.is_none(),
            record.control.is_none(),
            record.log.is_empty(),
            record.checked.is_none(),
            record.retired.is_empty(),
            record.assignments.is_empty(),
        ];
        assert_eq!(missing.iter().filter(|is_missing| **is_missing).count(), 1);
    }
}
