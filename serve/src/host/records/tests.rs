// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of kept records.

use proptest::prelude::*;

use super::*;

fn record(cpu: u32, sequence: u64, text: &str) -> LogRecord<'static> {
    LogRecord { sequence, time_ns: 0, cpu, level: Level::Info, module: "m".into(), text: text.to_owned().into() }
}

fn event(sequence: u64) -> Event {
    Event { sequence, time_ns: 0, kind: EventKind::HostReady }
}

#[test]
fn a_record_that_comes_twice_is_kept_once_and_a_hole_is_counted() {
    let mut records = Records::default();
    let kept = |kept: Option<Kept<LogRecord<'_>>>| kept.map(|kept| (kept.id, kept.lost));
    assert_eq!(kept(records.note(record(0, 0, "a"))), Some((1, 0)));
    assert_eq!(kept(records.note(record(1, 2, "b"))), Some((2, 2)));
    assert_eq!(kept(records.note(record(0, 0, "a"))), None);
    assert_eq!((records.log.len(), records.lost), (2, 2));
    assert_eq!(records.levels[&Level::Info], 2);
}

#[test]
fn a_host_that_was_powered_on_again_is_heard_and_its_numbers_go_on() {
    let mut records = Records::default();
    for sequence in 0..3 {
        records.note_event(event(sequence));
    }
    assert!(records.note_event(event(0)).is_none());
    records.begin_again();
    assert_eq!(records.note_event(event(0)).map(|kept| (kept.id, kept.lost)), Some((4, 0)));
    assert_eq!(records.kinds["host-ready"], 4);
}

#[test]
fn a_roll_back_is_counted_if_the_update_was_asked_for_elsewhere() {
    let mut records = Records::default();
    records.note(record(0, 0, "the update was rolled back after 120 us, and guests go on in the old image: x"));
    records.note(record(0, 1, "ready"));
    assert_eq!(records.rolled_back, 1);
}

#[test]
fn an_event_is_counted_under_the_name_that_its_json_has() {
    let kinds = [
        EventKind::HostReady,
        EventKind::VmStopped { name: "a".to_owned(), reason: String::new() },
        EventKind::VmDebugExit { name: "a".to_owned(), code: 1 },
        EventKind::HostUpdated { generation: 2 },
    ];
    for event in kinds {
        let json = serde_json::to_value(&event).expect("JSON");
        let name = json.as_str().map(str::to_owned).or_else(|| json.as_object()?.keys().next().cloned());
        assert_eq!(name.as_deref(), Some(kind(&event)));
    }
}

proptest! {
    #[test]
    fn whatever_a_host_sends_memory_is_bounded_and_ids_rise(
        sent in prop::collection::vec((0..3u32, prop_oneof![0..5000u64, any::<u64>()]), 0..3000),
    ) {
        let mut records = Records::default();
        for (cpu, sequence) in sent {
            records.note(record(cpu, sequence, ""));
            records.note_event(event(sequence));
        }
        prop_assert!(records.log.len() <= MAX_LOG && records.events.len() <= MAX_EVENTS);
        prop_assert!(records.log.iter().zip(records.log.iter().skip(1)).all(|(a, b)| a.id + 1 == b.id));
    }
}
