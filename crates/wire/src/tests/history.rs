// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events that are kept, and handed over.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use proptest::prelude::*;

use crate::history::{HISTORY_BYTES, History, KEPT_EVENTS};
use crate::{Event, EventKind};

fn started(name: &str) -> EventKind {
    EventKind::VmStarted { name: name.to_string() }
}

fn all_from(history: &History, sequence: u64) -> Vec<Event> {
    let mut all = Vec::new();
    history.visit(sequence, |event| {
        let mut bytes = Vec::new();
        cbor::append(event, &mut bytes).expect("any event has an encoding");
        all.push(cbor::read(&bytes).expect("as a client reads it"));
        true
    });
    all
}

fn bytes(history: &History) -> Vec<u8> {
    let (first, second) = history.bytes();
    [first, second].concat()
}

fn history(events: u64) -> History {
    let mut history = History::new();
    (0..events).for_each(|number| history.push(number * 10, started(&number.to_string())));
    history
}

#[test]
fn the_next_image_has_the_events_of_the_one_before_and_counts_on() {
    let before = history(5);
    let mut next = History::new();
    next.adopt(&bytes(&before), before.next_sequence());
    assert_eq!(all_from(&next, 0), all_from(&before, 0));
    next.push(60, EventKind::HostUpdated { generation: 2 });
    let all = all_from(&next, 4);
    assert_eq!(all.iter().map(|event| event.sequence).collect::<Vec<_>>(), [4, 5]);
    let mut third = History::new();
    third.adopt(&bytes(&next), next.next_sequence());
    assert_eq!(all_from(&third, 0).len(), 6, "they are handed over again");
}

#[test]
fn events_that_came_before_the_hand_over_was_read_follow_those_in_it() {
    let mut next = History::new();
    next.push(99, started("own"));
    next.adopt(&bytes(&history(3)), 3);
    let all = all_from(&next, 0);
    assert_eq!(
        all.iter().map(|event| (event.sequence, event.time_ns)).collect::<Vec<_>>(),
        [(0, 0), (1, 10), (2, 20), (3, 99)]
    );
    assert_eq!(next.next_sequence(), 4);
}

#[test]
fn an_image_that_left_numbers_alone_is_counted_on_from() {
    let mut next = History::new();
    next.adopt(&[], 57);
    next.push(1, EventKind::HostReady);
    assert_eq!(all_from(&next, 0).iter().map(|event| event.sequence).collect::<Vec<_>>(), [57]);
}

#[test]
fn the_oldest_give_way() {
    let mut long = History::new();
    let name: String = "n".repeat(200);
    (0..1000).for_each(|_| long.push(0, started(&name)));
    assert!(bytes(&long).len() <= HISTORY_BYTES);
    assert_eq!(all_from(&long, 0).len(), KEPT_EVENTS);
    let mut next = History::new();
    next.adopt(&bytes(&long), long.next_sequence());
    let all = all_from(&next, 0);
    assert_eq!(all.last().map(|event| event.sequence), Some(999));
    assert!(all.len() > 50, "{}", all.len());
}

#[test]
fn a_visitor_that_is_full_finds_the_rest_later() {
    let history = history(10);
    let mut seen = 0;
    let next = history.visit(2, |_| {
        seen += 1;
        seen < 4
    });
    assert_eq!(next, 5, "the one that was refused comes again");
    assert_eq!(all_from(&history, next).len(), 5);
}

#[test]
fn an_event_of_a_kind_that_is_not_known_is_kept_as_such() {
    let mut bytes = bytes(&history(1));
    // The number 9, the time 9, a kind that no release has.
    bytes.extend([5, 0, 0x83, 9, 9, 0x18, 120]);
    bytes.extend(self::bytes(&history(1)));
    let mut next = History::new();
    next.adopt(&bytes, 20);
    let kinds: Vec<EventKind> = all_from(&next, 0).into_iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [started("0"), EventKind::Unknown, started("0")]);
}

#[test]
fn an_event_that_cannot_be_read_is_passed_over() {
    let mut bytes = bytes(&history(1));
    bytes.extend([3, 0, 0x83, 9, 9]);
    bytes.extend(self::bytes(&history(1)));
    let mut next = History::new();
    next.adopt(&bytes, 20);
    assert_eq!(all_from(&next, 0).len(), 2);
}

#[test]
fn what_is_handed_over_keeps_its_bytes() {
    let mut history = History::new();
    history.push(5, EventKind::VmStopped { name: "a".to_string(), reason: "b".to_string() });
    history.push(6, EventKind::HostUpdated { generation: 2 });
    let stopped = [10, 0, 0x83, 0, 5, 0x82, 3, 0x82, 0x61, b'a', 0x61, b'b'];
    let updated = [7, 0, 0x83, 1, 6, 0x82, 18, 0x81, 2];
    assert_eq!(bytes(&history), [&stopped[..], &updated].concat());
}

proptest! {
    #[test]
    fn no_bytes_are_too_strange(noise in prop::collection::vec(any::<u8>(), 0..2000), next in any::<u32>()) {
        let mut history = history(3);
        history.adopt(&noise, u64::from(next));
        prop_assert!(history.next_sequence() >= u64::from(next) && bytes(&history).len() <= HISTORY_BYTES);
    }
}
