// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tool and host of two releases: messages with fields and variants that the other side does not know.

use alloc::string::{String, ToString};
use std::vec;
use std::vec::Vec;

use serde::{Deserialize, Serialize};

use super::{decoded, encoded, framed, to_host};
use crate::decode::kind;
use crate::frugal::{Asked, Listener, Question};
use crate::*;
use cbor::{Error, Reader};

fn written(value: &impl Serialize) -> Vec<u8> {
    let mut bytes = vec![];
    cbor::append(value, &mut bytes).expect("each kind has an encoding");
    bytes
}

fn read<'b, T: Deserialize<'b>>(bytes: &'b [u8]) -> Result<T, Error> {
    T::deserialize(&mut Reader::new(bytes))
}

/// A frame with this message.
fn message(value: &impl Serialize) -> Vec<u8> {
    framed(&[&[VERSION][..], &written(value)].concat())
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Old {
    name: String,
    number: u32,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct New {
    name: String,
    number: u32,
    #[serde(default)]
    added: Option<(u64, Vec<String>)>,
    #[serde(default)]
    count: u8,
}

fn new() -> New {
    New { name: "a".to_string(), number: 7, added: Some((1 << 40, vec!["b".to_string()])), count: 9 }
}

#[test]
fn fields_that_are_not_known_are_passed_over_and_missing_ones_have_their_default() {
    let old = Old { name: "a".to_string(), number: 7 };
    assert_eq!(read::<Old>(&written(&new())), Ok(old));
    let old = Old { name: "a".to_string(), number: 7 };
    assert_eq!(read::<New>(&written(&old)), Ok(New { added: None, count: 0, ..new() }));
    assert_eq!(read::<New>(&written(&new())), Ok(new()));
    let two = written(&vec![new(), new()]);
    assert_eq!(read::<Vec<Old>>(&two).map(|all| all.len()), Ok(2), "what follows is found");
}

#[test]
fn a_field_that_has_no_default_may_not_be_missing() {
    assert_eq!(read::<Old>(&written(&("a",))), Err(Error::Malformed));
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Plain,
    Named { name: String },
    Unknown,
}

#[derive(Serialize)]
enum NewKind {
    Plain,
    Named {
        name: String,
        since: u64,
    },
    #[allow(dead_code)]
    Unknown,
    More,
    Large {
        list: Vec<u32>,
        text: String,
    },
    Newtype(Old),
}

#[test]
fn a_variant_that_is_not_known_is_the_unknown_one_and_what_follows_is_found() {
    let large = NewKind::Large { list: vec![1, 2, 3], text: "t".to_string() };
    let named = NewKind::Named { name: "a".to_string(), since: 5 };
    let newtype = NewKind::Newtype(Old { name: String::new(), number: 1 });
    let all = written(&vec![NewKind::Plain, large, named, NewKind::More, newtype, NewKind::Plain]);
    let known = Kind::Named { name: "a".to_string() };
    let expected = vec![Kind::Plain, Kind::Unknown, known, Kind::Unknown, Kind::Unknown, Kind::Plain];
    assert_eq!(read::<Vec<Kind>>(&all), Ok(expected));
}

#[test]
fn an_event_that_is_not_known_is_shown_and_the_others_come_too() {
    /// The last kind that this release knows has a smaller number.
    const NEW_KIND: u32 = 1000;
    let known = Event { sequence: 6, time_ns: 2, kind: EventKind::HostReady };
    let new = (5, 1, (NEW_KIND, ("what", 3)));
    let bytes = written(&(2, new, &known));
    // Both are pages of two events: the first one of a newer kind.
    let page = [&[0x82][..], &bytes[2..]].concat();
    let unknown = Event { sequence: 5, time_ns: 1, kind: EventKind::Unknown };
    assert_eq!(read::<Vec<Event>>(&page), Ok(vec![unknown, known]));
}

#[test]
fn a_request_that_is_not_known_is_refused_by_its_number() {
    let plain = message(&(kind::REQUEST, (77, 999)));
    let with_fields = message(&(kind::REQUEST, (77, (999, ("a", 1)))));
    let with_new_part = message(&(kind::REQUEST, (77, (22, (9, 1, "x")))));
    for bytes in [plain, with_fields, with_new_part] {
        assert_eq!(decoded(&bytes), [Err(FrameError::NewRequest { id: 77 })]);
        let found = to_host(&bytes);
        assert_eq!(found, [Err(FrameError::NewRequest { id: 77 })]);
        let mut listener = Listener::new();
        let heard: Vec<_> = bytes.iter().filter_map(|&byte| listener.push_byte(byte)).collect();
        assert_eq!(heard, [Ok(Question { id: 77, asked: Asked::Other })]);
    }
}

#[test]
fn answers_and_messages_that_are_not_known_are_distinguished_from_damage() {
    let answer = message(&(kind::RESPONSE, (78, (0, (999, ("a",))))));
    assert_eq!(decoded(&answer), [Err(FrameError::NewResponse { id: 78 })]);
    let stream = message(&(2, (999, ("a",))));
    assert_eq!(decoded(&stream), [Err(FrameError::NewMessage)]);
    let other = message(&(9, ("a",)));
    assert_eq!(decoded(&other), [Err(FrameError::NewMessage)]);
    let found = to_host(&other);
    assert_eq!(found, [Ok(None)], "no request: not the host's");
}

#[test]
fn a_request_with_a_field_more_is_the_one_that_is_known() {
    let bytes = message(&(kind::REQUEST, (79, (1, (4, "new")), "and here")));
    let body = RequestBody::VmList { from_index: 4 };
    assert_eq!(decoded(&bytes), [Ok(Frame::Request(Request { id: 79, body: body.clone() }))]);
    assert_eq!(bytes[..], message(&(0, (79, (1, (4, "new")), "and here")))[..]);
    assert_ne!(encoded(&Frame::Request(Request { id: 79, body })), bytes);
}

#[test]
fn a_reason_that_is_not_known_is_shown_with_its_text() {
    let bytes = message(&(kind::RESPONSE, (80, (1, (99, "because", "do")))));
    let refusal = Refusal { code: RefusalCode::Unknown, reason: "because".to_string(), hint: "do".to_string() };
    assert_eq!(decoded(&bytes), [Ok(Frame::Response(Response { id: 80, result: Err(refusal) }))]);
}

#[test]
fn all_messages_are_cbor_that_others_read() {
    for frame in super::samples::all() {
        let bytes = written(&frame);
        let mut other = minicbor::Decoder::new(&bytes);
        other.skip().expect("well-formed");
        assert_eq!(other.position(), bytes.len(), "{frame:?}");
    }
}
