// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's end of a stream, against the table of its guest and a model: byte strings without an end, and credit in
//! 64 bits.

use std::collections::VecDeque;
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::accepted::accepted;
use crate::*;

pub const PEER: Address = Address { cid: 7, port: 10_809 };
const ROOM: u32 = 1000;

/// A guest that keeps all rules: what its table lets through is sent, and what it receives counts.
pub struct Guest {
    pub table: Connections,
    pub host_port: u32,
    room: u32,
    pub received: Vec<u8>,
    consumed: u64,
    sent: u64,
    /// Bytes up to which the host has room.
    host_until: u64,
    pub is_reset: bool,
}

impl Guest {
    pub fn new() -> Self {
        let table = Connections::new(PEER.cid);
        let (received, host_port, room) = (Vec::new(), 0, ROOM);
        Self { table, host_port, room, received, consumed: 0, sent: 0, host_until: 0, is_reset: false }
    }

    pub fn header(&self, operation: Operation, bytes: u32) -> Header {
        let destination = Address { cid: HOST_CID, port: self.host_port };
        let (operation, flags, buffer_bytes) = (Some(operation), 0, self.room);
        Header { source: PEER, destination, bytes, operation, flags, buffer_bytes, consumed: self.consumed as u32 }
    }

    /// The guest gets the next packet, or the first bytes of its data; false if there is none.
    pub fn take(&mut self, stream: &mut Stream, most: usize) -> bool {
        let Some(Outgoing { header, data }) = stream.next() else { return false };
        let data = data.concat();
        assert_eq!((header.bytes as usize, header.source.cid), (data.len(), HOST_CID));
        assert_eq!(self.table.receive(&header, header.bytes), Ok(()), "{header:?}");
        let taken = data.len().min(most.max(1));
        self.table.note_received(&header, taken as u32);
        self.received.extend(&data[..taken]);
        match header.operation {
            Some(Operation::Request) => self.host_port = header.source.port,
            Some(Operation::Reset) => {
                self.table.discard(PEER.port, header.source);
                self.is_reset |= header.source.port == self.host_port;
            }
            _ => {}
        }
        if header.operation != Some(Operation::Reset) {
            self.host_until = u64::from(header.consumed) + u64::from(header.buffer_bytes);
        }
        stream.note_sent(&header, taken as u32);
        true
    }

    /// The guest sends a packet with this data.
    pub fn send(&mut self, stream: &mut Stream, operation: Operation, data: &[u8]) -> Result<(), Refused> {
        let header = self.header(operation, data.len() as u32);
        assert_eq!(self.table.send(&header, false), Ok(true), "{header:?}");
        let mut at = 0;
        for place in stream.accept(&header)? {
            place.copy_from_slice(&data[at..at + place.len()]);
            at += place.len();
        }
        stream.note_received(at as u32);
        assert_eq!(at, data.len());
        self.sent += data.len() as u64;
        Ok(())
    }
}

fn open() -> (Stream, Guest) {
    let (mut stream, mut guest) = (Stream::new(PEER), Guest::new());
    stream.open(100);
    assert_eq!(stream.phase(), StreamPhase::Connecting);
    assert!(guest.take(&mut stream, 0));
    assert!(!guest.take(&mut stream, 0), "it is asked for once");
    assert_eq!(guest.send(&mut stream, Operation::Response, &[]), Ok(()));
    assert_eq!(stream.phase(), StreamPhase::Open);
    (stream, guest)
}

#[test]
fn s5_10_6_6_no_data_goes_before_the_guest_has_accepted() {
    let (mut stream, mut guest) = (Stream::new(PEER), Guest::new());
    assert_eq!((stream.send(&[1]), stream.next()), (0, None));
    stream.open(100);
    assert_eq!(stream.send(&[1]), 0);
    assert!(guest.take(&mut stream, 0));
    let early = guest.header(Operation::Data, 1);
    assert_eq!(stream.accept(&early).map(drop), Err(Refused));
    assert_eq!(stream.phase(), StreamPhase::Closed);
}

#[test]
fn s5_10_6_3_data_waits_for_room_and_the_host_states_its_own() {
    let (mut stream, mut guest) = open();
    assert_eq!(stream.send(&[7; 1500]), 1500);
    assert!(guest.take(&mut stream, 5000));
    assert_eq!(guest.received.len(), ROOM as usize);
    assert!(!guest.take(&mut stream, 5000), "there is no room");
    guest.consumed = 1000;
    assert_eq!(guest.send(&mut stream, Operation::CreditUpdate, &[]), Ok(()));
    assert!(guest.take(&mut stream, 5000));
    assert_eq!(guest.received.len(), 1500);
    let half = vec![5; STREAM_BYTES / 2];
    assert_eq!(guest.send(&mut stream, Operation::Data, &half), Ok(()));
    let mut into = vec![0; STREAM_BYTES];
    assert_eq!(stream.receive(&mut into), half.len());
    assert!(guest.take(&mut stream, 0), "half of the room is stated again");
    assert_eq!(guest.host_until, (STREAM_BYTES + half.len()) as u64);
    assert_eq!(guest.send(&mut stream, Operation::CreditRequest, &[]), Ok(()));
    assert!(guest.take(&mut stream, 0));
    assert!(!guest.take(&mut stream, 0));
}

#[test]
fn s5_10_6_3_1_more_data_than_the_host_has_room_for_ends_the_stream() {
    let (mut stream, mut guest) = open();
    assert_eq!(guest.send(&mut stream, Operation::Data, &vec![1; STREAM_BYTES]), Ok(()));
    let header = guest.header(Operation::Data, 1);
    assert_eq!(stream.accept(&header).map(drop), Err(Refused));
    assert_eq!((stream.phase(), stream.next()), (StreamPhase::Closed, None));
    let mut into = vec![0; 2 * STREAM_BYTES];
    assert_eq!(stream.receive(&mut into), STREAM_BYTES, "what it was allowed is there");
}

#[test]
fn packets_of_other_connections_do_not_disturb_this_one() {
    let (mut stream, guest) = open();
    let good = guest.header(Operation::Data, 1);
    let port = |port| Header { destination: Address { cid: HOST_CID, port }, ..good };
    let source = |source| Header { source, ..good };
    for bad in [port(99), source(Address { port: 1, ..PEER }), source(Address { cid: 8, ..PEER })] {
        assert_eq!(stream.accept(&bad).map(drop), Err(Refused));
        assert_eq!(stream.phase(), StreamPhase::Open);
    }
    for operation in [None, Some(Operation::Request), Some(Operation::Response)] {
        let (mut stream, _) = open();
        assert_eq!(stream.accept(&Header { operation, ..good }).map(drop), Err(Refused), "{operation:?}");
    }
}

#[test]
fn a_guest_that_ends_the_stream_leaves_what_it_has_sent() {
    for operation in [Operation::Shutdown, Operation::Reset] {
        let (mut stream, mut guest) = open();
        assert_eq!(guest.send(&mut stream, Operation::Data, &[1, 2]), Ok(()));
        assert_eq!(guest.send(&mut stream, operation, &[]), Ok(()));
        assert_eq!((stream.phase(), stream.send(&[1])), (StreamPhase::Closed, 0));
        let mut into = [0; 9];
        assert_eq!((stream.receive(&mut into), into[..2].to_vec()), (2, vec![1, 2]));
        stream.reset();
        // It is notified of the end unless it has itself made it.
        assert_eq!(guest.take(&mut stream, 0), operation == Operation::Shutdown);
        assert_eq!(guest.is_reset, operation == Operation::Shutdown);
        assert!(guest.table.all().is_empty());
    }
}

#[test]
fn the_next_connection_begins_behind_the_end_of_the_last() {
    let (mut stream, mut guest) = open();
    assert_eq!((stream.send(&[1; 10]), guest.send(&mut stream, Operation::Data, &[2])), (10, Ok(())));
    stream.open(101);
    stream.open(102);
    assert_eq!(stream.receive(&mut [0; 9]), 0);
    assert!(guest.take(&mut stream, 0));
    assert!(guest.is_reset);
    assert!(guest.take(&mut stream, 0));
    assert_eq!(guest.host_port, 102);
    assert_eq!(guest.send(&mut stream, Operation::Response, &[]), Ok(()));
    assert_eq!((stream.phase(), stream.next()), (StreamPhase::Open, None));
}

#[test]
fn a_guest_without_a_listener_or_a_device_closes_it() {
    let (mut stream, mut guest) = (Stream::new(PEER), Guest::new());
    stream.open(100);
    let request = stream.next().expect("a request").header;
    stream.note_refused(&request);
    assert_eq!((stream.phase(), stream.next()), (StreamPhase::Closed, None));
    stream.open(101);
    assert!(guest.take(&mut stream, 0));
    assert_eq!(guest.send(&mut stream, Operation::Reset, &[]), Ok(()));
    assert_eq!((stream.phase(), stream.next()), (StreamPhase::Closed, None));
}

/// An action of one side.
#[derive(Clone, Debug)]
enum Step {
    HostSends(usize),
    HostReceives(usize),
    GuestTakes(usize),
    GuestSends(usize),
    GuestConsumes(u64),
    GuestRoom(u32),
    GuestAsks,
    /// The host goes on in the next image.
    Update,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let bytes = || prop_oneof![1usize..50, 1usize..3 * STREAM_BYTES / 2];
    let step = prop_oneof![
        bytes().prop_map(Step::HostSends),
        bytes().prop_map(Step::HostReceives),
        bytes().prop_map(Step::GuestTakes),
        bytes().prop_map(Step::GuestSends),
        (0u64..5000).prop_map(Step::GuestConsumes),
        (0u32..5000).prop_map(Step::GuestRoom),
        Just(Step::GuestAsks),
        Just(Step::Update),
    ];
    prop::collection::vec(step, 1..80)
}

/// Bytes of an endless string, from one on.
fn string(from: usize, bytes: usize) -> Vec<u8> {
    (from..from + bytes).map(|at| (at ^ at >> 8) as u8).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn s5_10_6_bytes_arrive_in_order_and_no_side_exceeds_the_room_of_the_other(
        steps in steps(), is_accepted: bool,
    ) {
        let (mut stream, mut guest) = if is_accepted { accepted() } else { open() };
        let (mut sent, mut received, mut waiting) = (0, 0_u64, VecDeque::<u8>::new());
        for step in steps {
            match step {
                Step::HostSends(bytes) => {
                    let taken = stream.send(&string(sent, bytes));
                    let free = STREAM_BYTES - (sent - guest.received.len());
                    prop_assert_eq!(taken, bytes.min(free));
                    sent += taken;
                }
                Step::HostReceives(bytes) => {
                    let mut into = vec![0; bytes];
                    let taken = stream.receive(&mut into);
                    prop_assert_eq!(taken, bytes.min(waiting.len()));
                    prop_assert!(waiting.drain(..taken).eq(into[..taken].iter().copied()));
                    received += taken as u64;
                }
                // It asserts that the guest's table, which knows its room, lets the packet through.
                Step::GuestTakes(bytes) => _ = guest.take(&mut stream, bytes),
                Step::GuestSends(bytes) => {
                    let bytes = bytes.min((guest.host_until - guest.sent) as usize);
                    let data = string(guest.sent as usize, bytes);
                    waiting.extend(&data);
                    prop_assert_eq!(guest.send(&mut stream, Operation::Data, &data), Ok(()));
                }
                Step::GuestConsumes(bytes) => {
                    guest.consumed = (guest.consumed + bytes).min(guest.received.len() as u64);
                    prop_assert_eq!(guest.send(&mut stream, Operation::CreditUpdate, &[]), Ok(()));
                }
                Step::GuestRoom(room) => guest.room = room,
                Step::Update => {
                    if let Some(progress) = stream.progress() {
                        stream = Stream::new(Address { cid: 0, port: 0 });
                        prop_assert!(stream.resume(&progress));
                        prop_assert_eq!(stream.progress(), Some(progress));
                    }
                }
                Step::GuestAsks => prop_assert_eq!(guest.send(&mut stream, Operation::CreditRequest, &[]), Ok(())),
            }
            prop_assert!(guest.host_until <= received + STREAM_BYTES as u64);
            prop_assert_eq!(stream.phase(), StreamPhase::Open);
        }
        prop_assert_eq!(&guest.received, &string(0, guest.received.len()));
        // Nothing is lost: with room enough all of it arrives.
        guest.room = 1 << 20;
        guest.consumed = guest.received.len() as u64;
        prop_assert_eq!(guest.send(&mut stream, Operation::CreditUpdate, &[]), Ok(()));
        while guest.take(&mut stream, usize::MAX) {}
        prop_assert_eq!(guest.received, string(0, sent));
    }

    #[test]
    fn no_packet_of_a_guest_is_taken_beyond_the_buffer(
        packets in prop::collection::vec((0u16..9, any::<u32>(), any::<u32>(), any::<u32>(), 0u32..3), 1..60)
    ) {
        let (mut stream, guest) = open();
        for (operation, bytes, buffer_bytes, consumed, port) in packets {
            let mut header = guest.header(Operation::Data, if bytes & 1 == 0 { bytes } else { bytes & 0xffff });
            header.operation = Header::parse(&{
                let mut raw = header.bytes();
                raw[30] = operation as u8;
                raw
            }).and_then(|header| header.operation);
            (header.buffer_bytes, header.consumed) = (buffer_bytes, consumed);
            header.destination.port += u32::from(port == 0);
            let places = stream.accept(&header).map_or(0, |places| places.iter().map(|place| place.len()).sum());
            prop_assert!(places == 0 || header.operation == Some(Operation::Data) && places == header.bytes as usize);
            stream.note_received(places as u32);
            stream.send(&[1; 3000]);
            while let Some(Outgoing { header, data }) = stream.next() {
                prop_assert!(data.concat().len() == header.bytes as usize);
                stream.note_sent(&header, header.bytes);
            }
        }
        let mut into = vec![0; 2 * STREAM_BYTES];
        prop_assert!(stream.receive(&mut into) <= STREAM_BYTES);
    }
}
