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
    assert_eq!(kept(records.note(record(0, 0, "a"), 0)), Some((1, 0)));
    assert_eq!(kept(records.note(record(1, 2, "b"), 0)), Some((2, 2)));
    assert_eq!(kept(records.note(record(0, 0, "a"), 0)), None);
    assert_eq!((records.log.len(), records.counts.lost), (2, 2));
    assert_eq!(records.counts.levels[&Level::Info], 2);
}

#[test]
fn a_host_that_was_powered_on_again_is_heard_and_its_numbers_go_on() {
    let mut records = Records::default();
    for sequence in 0..3 {
        records.note_event(event(sequence), 0);
    }
    assert!(records.note_event(event(0), 0).is_none());
    records.counts.begin_again();
    assert_eq!(records.note_event(event(0), 0).map(|kept| (kept.id, kept.lost)), Some((4, 0)));
    assert_eq!(records.counts.kinds["host-ready"], 4);
}

#[test]
fn a_roll_back_is_counted_by_reason_if_the_update_was_asked_for_elsewhere() {
    let mut records = Records::default();
    let texts = [
        "CPU 1 waited too long for the others",
        "CPU 0: the new image hangs, or has waited too long for this CPU",
        "CPU 0: exception 14 #PF page fault at 0x1, error code 0x0, fault address 0xdead0000",
        "CPU 0: the block of guest 1: its sum is wrong",
        "no CPU gave a reason",
        "CPU 0: self-test",
    ];
    for (sequence, text) in texts.into_iter().enumerate() {
        let text = format!("the update was rolled back after 120 us, and guests go on in the old image: {text}");
        records.note(record(0, sequence as u64, &text), 0);
    }
    records.note(record(0, 6, "CPU 1 waited too long for the others"), 0);
    records.note_event(Event { kind: EventKind::UpdateReturns { generation: 3 }, ..event(0) }, 0);
    assert_eq!(records.counts.rolled_back, 7);
    let reasons: Vec<_> = records.counts.roll_backs().filter(|(_, count)| *count == 1).map(|(name, _)| name).collect();
    assert_eq!(reasons, ["waited", "hung", "exception", "damaged", "unknown", "unconfirmed", "other"]);
}

#[test]
fn roll_backs_that_were_counted_before_there_were_reasons_have_another_one() {
    let mut records =
        Records { counts: serde_json::from_str("{\"rolled_back\": 4}").expect("JSON"), ..Records::default() };
    records.note(record(0, 0, "the update was rolled back after 1 us: no CPU gave a reason"), 0);
    let roll_backs: BTreeMap<_, _> = records.counts.roll_backs().collect();
    assert_eq!((roll_backs["other"], roll_backs["unknown"]), (4, 1));
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

#[test]
fn counts_come_back_from_the_history_and_records_follow_where_they_ended() {
    let mut records = Records::default();
    records.note(record(3, 0, "a"), 5);
    records.note_event(event(0), 6);
    let json = serde_json::to_vec(&records.counts).expect("JSON");
    let counts: Counts = serde_json::from_slice(&json).expect("the same");
    let mut again = Records { counts, ..Records::default() };
    assert_eq!(again.counts, records.counts);
    assert!(again.note(record(3, 0, "a"), 5).is_none() && again.note_event(event(0), 6).is_none());
    let kept = again.note(record(3, 1, "b"), 7).expect("it is new");
    assert_eq!((kept.id, kept.at_ms, kept.lost), (2, 7, 0));
    let json = serde_json::to_vec(&kept).expect("JSON");
    assert_eq!(serde_json::from_slice::<Kept<LogRecord<'static>>>(&json).expect("the same"), kept);
}

#[test]
fn a_power_on_that_the_service_did_not_watch_is_noticed() {
    let before = Place { generation: 2, uptime_ns: 100, booted_ms: 1_000_000 };
    let cases = [
        (Place { generation: 2, uptime_ns: 200, booted_ms: 1_000_900 }, false),
        (Place { generation: 3, uptime_ns: 50, booted_ms: 999_000 }, false),
        (Place { generation: 2, uptime_ns: 99, booted_ms: 1_000_000 }, true),
        (Place { generation: 1, uptime_ns: 200, booted_ms: 1_000_000 }, true),
        (Place { generation: 3, uptime_ns: 200, booted_ms: 1_061_000 }, true),
    ];
    for (now, expected) in cases {
        assert_eq!(before.is_before_power_on(now), expected, "{now:?}");
    }
}

proptest! {
    #[test]
    fn whatever_a_host_sends_memory_is_bounded_and_ids_rise(
        sent in prop::collection::vec((0..3u32, prop_oneof![0..5000u64, any::<u64>()]), 0..3000),
    ) {
        let mut records = Records::default();
        for (cpu, sequence) in sent {
            records.note(record(cpu, sequence, ""), 0);
            records.note_event(event(sequence), 0);
        }
        prop_assert!(records.log.len() <= MAX_LOG && records.events.len() <= MAX_EVENTS);
        prop_assert!(records.log.iter().zip(records.log.iter().skip(1)).all(|(a, b)| a.id + 1 == b.id));
    }
}
