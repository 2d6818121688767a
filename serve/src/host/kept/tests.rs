// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of the kept state.

use wire::{Event, EventKind, Level, LogRecord};

use super::*;
use crate::updates::Step;

/// Returns records and sums of updates, none of them empty.
fn filled() -> (Records, Sums) {
    let (mut records, mut sums) = (Records::default(), Sums::default());
    let text = "the update was rolled back after 9 us: no CPU gave a reason";
    let (level, module) = (Level::Info, "m".into());
    records.note(LogRecord { sequence: 0, time_ns: 0, cpu: 3, level, module, text: text.into() }, 5);
    records.note_event(Event { sequence: 0, time_ns: 0, kind: EventKind::HostReady }, 6);
    sums.ends.insert(Step::Failed, 2);
    sums.times.seen = 7;
    (records, sums)
}

#[test]
fn the_state_is_one_value_and_both_parts_come_back() {
    let (records, sums) = filled();
    let json = serde_json::to_vec(&State { counts: &records.counts, updates: &sums }).expect("JSON");
    assert_eq!(serde_json::from_slice::<Counts>(&json).expect("the counts"), records.counts);
    assert_eq!(serde_json::from_slice::<OfUpdates>(&json).expect("the sums").updates, sums);
}

#[test]
fn a_state_of_the_release_before_has_no_updates_and_the_release_before_reads_this_one() {
    let (records, sums) = filled();
    let before = serde_json::to_value(&records.counts).expect("JSON");
    assert_eq!(serde_json::from_value::<OfUpdates>(before.clone()).expect("defaults").updates, Sums::default());
    let mut now = serde_json::to_value(State { counts: &records.counts, updates: &sums }).expect("JSON");
    now.as_object_mut().expect("an object").remove("updates");
    assert_eq!(now, before, "the rest is where it was");
}
