// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of packets and connections, named after sections of Virtio 1.3; `model` compares whole histories with a simple
//! model.

use std::vec::Vec;

use proptest::prelude::*;

use crate::*;

mod accepted;
mod model;
mod streams;

const A: u32 = 3;
const B: u32 = 4;
const ROOM: u32 = 1000;

fn header(operation: Operation, bytes: u32) -> Header {
    let (source, destination) = (Address { cid: A, port: 10 }, Address { cid: B, port: 20 });
    Header { source, destination, bytes, operation: Some(operation), flags: 0, buffer_bytes: ROOM, consumed: 0 }
}

fn back(header: Header) -> Header {
    Header { source: header.destination, destination: header.source, ..header }
}

/// The tables of two guests with an open connection.
fn open() -> (Connections, Connections) {
    let (mut a, mut b) = (Connections::new(A), Connections::new(B));
    let (request, response) = (header(Operation::Request, 0), back(header(Operation::Response, 0)));
    assert_eq!(a.send(&request, true), Ok(true));
    assert_eq!(b.receive(&request, 0), Ok(()));
    assert_eq!(b.send(&response, false), Ok(true));
    assert_eq!(a.receive(&response, 0), Ok(()));
    (a, b)
}

#[test]
fn s5_10_6_a_header_is_44_bytes_and_reads_back() {
    let header = Header { flags: 3, consumed: 7, ..header(Operation::Shutdown, 0) };
    let bytes = header.bytes();
    assert_eq!(bytes[..4], [3, 0, 0, 0]);
    assert_eq!(bytes[24..36], [0, 0, 0, 0, 1, 0, 4, 0, 3, 0, 0, 0]);
    assert_eq!(Header::parse(&bytes), Some(header));
}

#[test]
fn s5_10_4_the_upper_half_of_an_identifier_is_reserved() {
    for at in 4..8 {
        let mut bytes = header(Operation::Data, 1).bytes();
        bytes[at] = 1;
        assert_eq!(Header::parse(&bytes), None);
        bytes[at] = 0;
        bytes[at + 8] = 1;
        assert_eq!(Header::parse(&bytes), None);
    }
}

#[test]
fn s5_10_6_4_2_unknown_types_and_operations_are_refused() {
    for (at, value) in [(28, 0), (28, 2), (30, 0), (30, 8), (31, 1)] {
        let mut bytes = header(Operation::Data, 1).bytes();
        bytes[at] = value;
        let parsed = Header::parse(&bytes).expect("its identifiers are good");
        assert_eq!(parsed.operation, None);
        let (mut a, mut b) = open();
        assert_eq!(a.send(&parsed, true), Err(Refused));
        assert_eq!(b.receive(&parsed, 0), Err(Refused));
    }
}

#[test]
fn s5_10_6_6_a_connection_is_opened_used_and_reset() {
    let (mut a, mut b) = open();
    let data = header(Operation::Data, 10);
    assert_eq!((a.send(&data, false), b.receive(&data, 10)), (Ok(true), Ok(())));
    b.note_received(&data, 10);
    assert_eq!(b.all()[0].delivered, 10);
    let shutdown = back(header(Operation::Shutdown, 0));
    assert_eq!((b.send(&shutdown, false), a.receive(&shutdown, 0)), (Ok(true), Ok(())));
    let reset = header(Operation::Reset, 0);
    assert_eq!((a.send(&reset, false), b.receive(&reset, 0)), (Ok(true), Ok(())));
    b.reset(20, reset.source);
    let expected = Header::reset(reset.source, reset.destination);
    assert_eq!(b.next_reset(), Some(expected));
    b.take_reset(&expected);
    assert_eq!((a.all(), b.all(), b.next_reset()), (&[][..], &[][..], None));
}

#[test]
fn a_connection_is_asked_for_only_where_that_is_allowed() {
    let mut a = Connections::new(A);
    assert_eq!(a.send(&header(Operation::Request, 0), false), Err(Refused));
    assert!(a.all().is_empty());
}

#[test]
fn s5_10_6_6_data_of_no_open_connection_is_refused() {
    let (mut a, mut b) = (Connections::new(A), Connections::new(B));
    for operation in [Operation::Response, Operation::Data, Operation::Shutdown, Operation::CreditRequest] {
        assert_eq!(a.send(&header(operation, 0), true), Err(Refused), "{operation:?}");
        assert_eq!(b.receive(&header(operation, 0), 0), Err(Refused), "{operation:?}");
    }
    // No answer to RST: two ends would answer each other for ever.
    assert_eq!(a.send(&header(Operation::Reset, 0), true), Ok(false));
    let request = header(Operation::Request, 0);
    assert_eq!((a.send(&request, true), b.receive(&request, 0)), (Ok(true), Ok(())));
    assert_eq!(a.send(&header(Operation::Data, 1), true), Err(Refused), "it is not accepted yet");
    assert_eq!(b.send(&back(header(Operation::Data, 1)), true), Err(Refused), "it has not accepted it");
}

#[test]
fn a_connection_is_not_opened_twice() {
    let (mut a, mut b) = open();
    assert_eq!(a.send(&header(Operation::Request, 0), true), Err(Refused));
    assert_eq!(b.receive(&header(Operation::Request, 0), 0), Err(Refused));
    assert_eq!(a.receive(&back(header(Operation::Response, 0)), 0), Err(Refused));
}

#[test]
fn s5_10_6_3_1_more_data_than_there_is_room_for_is_refused() {
    let (_, mut b) = open();
    let data = header(Operation::Data, ROOM);
    assert_eq!(b.receive(&data, ROOM + 1), Err(Refused));
    assert_eq!(b.receive(&data, ROOM), Ok(()));
    b.note_received(&data, ROOM);
    assert_eq!(b.receive(&header(Operation::Data, 1), 1), Err(Refused));
    let consumed = Header { consumed: 1, ..back(header(Operation::CreditUpdate, 0)) };
    assert_eq!(b.send(&consumed, false), Ok(true));
    assert_eq!(b.receive(&header(Operation::Data, 1), 1), Ok(()));
    assert_eq!(b.receive(&header(Operation::Data, 2), 2), Err(Refused));
}

#[test]
fn s5_10_6_3_room_that_is_withdrawn_is_still_there_for_data_on_the_way() {
    let (_, mut b) = open();
    let smaller = Header { buffer_bytes: 1, ..back(header(Operation::CreditUpdate, 0)) };
    assert_eq!(b.send(&smaller, false), Ok(true));
    assert_eq!(b.receive(&header(Operation::Data, ROOM), ROOM), Ok(()));
}

#[test]
fn lies_about_room_change_nothing_or_only_the_liar_s_own() {
    for (buffer_bytes, consumed) in [(u32::MAX, u32::MAX / 2), (0, u32::MAX), (1 << 30, 1)] {
        let (_, mut b) = open();
        let lie = Header { buffer_bytes, consumed, ..back(header(Operation::CreditUpdate, 0)) };
        assert_eq!(b.send(&lie, false), Ok(true));
        assert_eq!(b.all()[0].room(), ROOM, "{buffer_bytes} {consumed}");
    }
    let (_, mut b) = open();
    assert_eq!(b.send(&Header { buffer_bytes: u32::MAX, ..back(header(Operation::CreditUpdate, 0)) }, false), Ok(true));
    assert_eq!(b.all()[0].room(), 1 << 30);
}

#[test]
fn ten_thousand_connections_end_at_the_limits() {
    let mut b = Connections::new(B);
    let mut asked = |cid: u32| {
        (0..10_000)
            .filter(|port| {
                let source = Address { cid, port: *port };
                b.receive(&Header { source, ..header(Operation::Request, 0) }, 0).is_ok()
            })
            .count()
    };
    let taken: Vec<usize> = (10..20).map(&mut asked).collect();
    assert_eq!(taken[..8], [CONNECTIONS_OF_PEER; 8]);
    assert_eq!(taken[8..], [0; 2]);
    assert_eq!(b.all().len(), CONNECTIONS);
    b.reset_all_of(12);
    let mut resets = 0;
    while let Some(reset) = b.next_reset() {
        assert_eq!((reset.source.cid, reset.destination.cid), (12, B));
        b.take_reset(&reset);
        resets += 1;
    }
    assert_eq!((resets, b.all().len()), (CONNECTIONS_OF_PEER, CONNECTIONS - CONNECTIONS_OF_PEER));
}

#[test]
fn a_packet_without_a_place_leaves_no_trace() {
    let (mut a, mut b) = (Connections::new(A), Connections::new(B));
    let (request, response) = (header(Operation::Request, 0), back(header(Operation::Response, 0)));
    assert_eq!((a.send(&request, true), b.receive(&request, 0)), (Ok(true), Ok(())));
    b.undo_receive(&request);
    assert!(b.all().is_empty());
    // It is sent again.
    assert_eq!((a.send(&request, true), b.receive(&request, 0)), (Ok(true), Ok(())));
    assert_eq!((b.send(&response, false), a.receive(&response, 0)), (Ok(true), Ok(())));
    a.undo_receive(&response);
    assert_eq!(a.all()[0].phase, Phase::Requested);
    assert_eq!((b.send(&response, false), a.receive(&response, 0)), (Ok(true), Ok(())));
    assert_eq!(a.all()[0].phase, Phase::Open);
}

#[test]
fn only_possible_tables_are_restored() {
    let (a, _) = open();
    let first = a.all()[0];
    let restore = |all: &[Connection]| Connections::new(A).restore(all.iter().copied());
    assert_eq!(restore(&[first]), Ok(()));
    assert_eq!(restore(&[first, first]), Err(Inconsistent));
    assert_eq!(restore(&[Connection { delivered: 1 << 31, ..first }]), Err(Inconsistent));
    let many = |count: u32| (0..count).map(|own_port| Connection { key: Key { own_port, ..first.key }, ..first });
    assert_eq!(restore(&many(CONNECTIONS as u32).collect::<Vec<_>>()), Ok(()));
    assert_eq!(restore(&many(CONNECTIONS as u32 + 1).collect::<Vec<_>>()), Err(Inconsistent));
}

proptest! {
    #[test]
    fn no_header_panics(bytes: [u8; HEADER_BYTES]) {
        if let Some(header) = Header::parse(&bytes) && header.operation.is_some() {
            prop_assert_eq!(Header::parse(&header.bytes()), Some(header));
        }
    }
}
