// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of updates that were kept.

use serde_json::json;

use super::*;
use crate::updates::{By, How};

/// Returns updates of which the first ends like this, and the records and the sums that the history has of them.
fn kept(steps: &[Step]) -> (Sums, Vec<Update>) {
    let mut updates = Updates::default();
    for step in steps {
        let id = updates.begin("rack1", "alice", How::default(), 9).expect("none is under way").id;
        updates.advance(id, |update| update.step = *step);
    }
    (updates.sums, updates.asked.into())
}

#[test]
fn an_update_comes_back_from_json_as_it_was() {
    let (_, mut all) = kept(&[Step::Done]);
    all[0].report = Some(UpdateReport { generation: 2, ..UpdateReport::default() });
    (all[0].by, all[0].confirm_within, all[0].message) = (By::Previous, Some(60), Some("a fact".to_owned()));
    let json = serde_json::to_value(&all[0]).expect("JSON");
    assert_eq!(serde_json::from_value::<Update>(json.clone()).expect("the same"), all[0]);
    for report in [json!({ "generation": 2 }), json!("none"), json!(null)] {
        let mut other = json.clone();
        other["report"] = report;
        let update: Update = serde_json::from_value(other).expect("it can be read");
        assert_eq!((update.id, update.report), (1, None), "the report of another release is left out");
    }
}

#[test]
fn updates_go_on_where_they_were() {
    let (sums, all) = kept(&[Step::Done, Step::Refused, Step::Done]);
    let mut updates = Updates::restored(sums.clone(), all.clone());
    assert_eq!((&updates.sums, &updates.asked), (&sums, &all.into()));
    assert_eq!(updates.begin("rack1", "bob", How::default(), 0).expect("none is under way").id, 4);
    // Records have an age limit, and sums have none.
    let mut updates = Updates::restored(sums, vec![]);
    assert_eq!(updates.begin("rack1", "bob", How::default(), 0).expect("none is under way").id, 4);
}

#[test]
fn an_update_that_was_under_way_has_failed_and_is_counted_once() {
    for step in [Step::Waiting, Step::Sending, Step::Switching] {
        let (sums, all) = kept(&[Step::Done, step]);
        let updates = Updates::restored(sums, all.clone());
        let last = updates.asked.back().expect("it is there");
        assert_eq!((last.id, last.step, last.message.as_deref()), (2, Step::Failed, Some(CUT)));
        assert!(updates.under_way().is_none());
        assert_eq!(updates.sums.ends, [(Step::Done, 1), (Step::Failed, 1)].into());
        // The record stays as it was.
        let again = Updates::restored(updates.sums.clone(), all);
        assert_eq!((&again.sums, &again.asked), (&updates.sums, &updates.asked));
    }
}

#[test]
fn an_end_that_the_sums_lack_is_counted() {
    let (sums, _) = kept(&[Step::Done]);
    let (all_sums, all) = kept(&[Step::Done, Step::Refused]);
    assert_eq!(Updates::restored(sums, all).sums, all_sums);
}

#[test]
fn sums_of_a_release_without_these_fields_are_none() {
    assert_eq!(serde_json::from_str::<Sums>("{}").expect("defaults"), Sums::default());
}
