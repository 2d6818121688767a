// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packets from one driver to another, by sections of the specification (1.3).

use std::vec;
use std::vec::Vec;

use ::virtio::{Chain, feature};
use ::vsock::{Address, CONNECTIONS_OF_PEER, HEADER_BYTES, Header, Operation, STREAM_BYTES};

use super::device::{RECEIVE, REFUSED, TRANSMIT, Vsock};
use super::*;
use crate::addr::AccessSize;
use crate::testing::{Between, VirtioDriver};

const A: u32 = 3;
const B: u32 = 4;
const ROOM: u32 = 100_000;

type Driver = VirtioDriver<Vsock>;

/// The guest `A` may connect to `B`.
fn device(cid: u32) -> Vsock {
    Vsock::new(cid, if cid == A { vec![B] } else { vec![] })
}

fn driver(cid: u32) -> Driver {
    let mut driver = Driver::new(device(cid));
    driver.start(feature::VERSION_1);
    driver
}

fn header(operation: Operation, bytes: u32) -> Header {
    let (source, destination) = (Address { cid: A, port: 10 }, Address { cid: B, port: 20 });
    Header { source, destination, bytes, operation: Some(operation), flags: 0, buffer_bytes: ROOM, consumed: 0 }
}

fn back(header: Header) -> Header {
    Header { source: header.destination, destination: header.source, ..header }
}

fn packet(header: &Header, data: &[u8]) -> Vec<u8> {
    [&header.bytes()[..], data].concat()
}

/// Takes the next packet of one driver to another, as the host does.
fn pass(from: &mut Driver, to: &mut Driver) -> Option<Received> {
    let mut chain = Chain::new();
    let taken = from.with(|vsock, io| {
        vsock.begin_sending(io)?;
        vsock.take(&mut chain, io)
    })?;
    let mut packet = match taken {
        Taken::Packet(packet) => packet,
        Taken::Refused(header) => {
            to.with(|vsock, io| vsock.reset_end(header.destination.port, header.source, io));
            from.with(|vsock, io| vsock.refuse(&header, io));
            from.with(|vsock, io| vsock.end_sending(true, io));
            return Some(Received::Refused);
        }
        other => panic!("{other:?}"),
    };
    let world = &mut to.world;
    let source = Between { from: &from.world.memory, to: &world.memory };
    let mut received = None;
    to.endpoint.work(&world.memory, &mut world.outputs, |vsock, io| {
        received = Some(vsock.receive(&mut packet, (&chain, &source), io)?);
        Ok(())
    });
    match received {
        Some(Received::All) => from.with(Vsock::done),
        Some(Received::Refused) | None => from.with(|vsock, io| vsock.refuse(packet.header(), io)),
        Some(Received::Sender(fault)) => from.with(|_, _| Err(fault)),
        _ => from.with(|vsock, io| {
            vsock.hold(&packet, io);
            Ok(())
        }),
    };
    from.with(|vsock, io| vsock.end_sending(true, io));
    received
}

fn send(from: &mut Driver, to: &mut Driver, header: Header, data: &[u8]) -> Option<Received> {
    from.add(TRANSMIT, &packet(&header, data), 0).expect("a free descriptor");
    let received = pass(from, to);
    while from.collect(TRANSMIT).is_some() {}
    received
}

fn offer(driver: &mut Driver, buffers: usize) {
    (0..buffers).for_each(|_| _ = driver.add(RECEIVE, &[], 1000).expect("a free descriptor"));
}

/// Packets that a driver has received: headers and data.
fn received(driver: &mut Driver) -> Vec<(Header, Vec<u8>)> {
    let parse = |bytes: Vec<u8>| {
        let (header, data) = bytes.split_first_chunk::<HEADER_BYTES>().expect("a header");
        (Header::parse(header).expect("good"), data.to_vec())
    };
    std::iter::from_fn(|| driver.collect(RECEIVE)).map(|(_, bytes)| parse(bytes)).collect()
}

/// Two drivers with an open connection.
fn open() -> (Driver, Driver) {
    let (mut a, mut b) = (driver(A), driver(B));
    offer(&mut a, 2);
    offer(&mut b, 2);
    assert_eq!(send(&mut a, &mut b, header(Operation::Request, 0), &[]), Some(Received::All));
    assert_eq!(send(&mut b, &mut a, back(header(Operation::Response, 0)), &[]), Some(Received::All));
    assert_eq!(received(&mut b), [(header(Operation::Request, 0), vec![])]);
    assert_eq!(received(&mut a), [(back(header(Operation::Response, 0)), vec![])]);
    (a, b)
}

#[test]
fn section_5_10_4_the_configuration_has_the_identifier() {
    let mut driver = driver(A);
    let bytes: Vec<u64> = (0..8).map(|at| driver.read(Driver::DEVICE + at, AccessSize::Byte)).collect();
    assert_eq!(bytes, [3, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn section_5_10_6_data_arrives_in_as_many_buffers_as_it_needs() {
    let (mut a, mut b) = open();
    offer(&mut b, 1);
    let data: Vec<u8> = (0..2500).map(|at| at as u8).collect();
    let whole = header(Operation::Data, 2500);
    assert_eq!(send(&mut a, &mut b, whole, &data), Some(Received::Full));
    offer(&mut b, 1);
    assert_eq!(pass(&mut a, &mut b), Some(Received::All));
    let pieces = received(&mut b);
    assert!(pieces.iter().all(|(header, data)| *header == Header { bytes: data.len() as u32, ..whole }));
    assert_eq!(pieces.len(), 3);
    assert_eq!(pieces.into_iter().flat_map(|(_, data)| data).collect::<Vec<_>>(), data);
    assert!(a.collect(TRANSMIT).is_some(), "it is given back");
}

/// The host's stream to port 20 of `B`, as far as the driver has given buffers. Returns what became of the last packet.
fn host_sends(stream: &mut ::vsock::Stream, to: &mut Driver) -> Option<Received> {
    let mut last = None;
    while let Some(Outgoing { header, data }) = stream.next() {
        let mut packet = Packet::of_host(header);
        last = to.with(|vsock, io| vsock.receive_of_host(&mut packet, data, io));
        match last {
            Some(Received::All | Received::Part) => stream.note_sent(&header, packet.passed()),
            Some(Received::Full) => {
                if packet.passed() > 0 {
                    stream.note_sent(&header, packet.passed());
                }
                break;
            }
            _ => stream.note_refused(&header),
        }
    }
    last
}

/// The driver answers the host.
fn answers(from: &mut Driver, stream: &mut ::vsock::Stream, operation: Operation) -> bool {
    let source = Address { cid: B, port: 20 };
    let destination = Address { cid: HOST_CID, port: 99 };
    let header = Header { source, destination, ..header(operation, 0) };
    from.add(TRANSMIT, &packet(&header, &[]), 0).expect("a free descriptor");
    let taken = from.with(|vsock, io| vsock.take(&mut Chain::new(), io));
    let Some(Taken::Packet(packet)) = taken else { panic!("{taken:?}") };
    let is_accepted = stream.accept(packet.header()).is_ok();
    from.with(Vsock::done);
    from.with(|vsock, io| vsock.end_sending(true, io));
    while from.collect(TRANSMIT).is_some() {}
    is_accepted
}

#[test]
fn the_host_s_own_data_arrives_in_order_in_as_many_buffers_as_it_needs() {
    let (mut b, mut stream) = (driver(B), ::vsock::Stream::new(Address { cid: B, port: 20 }));
    stream.open(99);
    assert_eq!(host_sends(&mut stream, &mut b), Some(Received::Full), "it waits for a buffer");
    offer(&mut b, 1);
    assert_eq!(host_sends(&mut stream, &mut b), Some(Received::All));
    assert_eq!(received(&mut b)[0].0.operation, Some(Operation::Request));
    assert!(answers(&mut b, &mut stream, Operation::Response));
    // The second time the buffer's end is passed: data in two pieces.
    for bytes in [3500, STREAM_BYTES] {
        let data: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8).collect();
        assert_eq!(stream.send(&data), bytes);
        let mut arrived = Vec::new();
        while stream.next().is_some() {
            offer(&mut b, 2);
            assert!(matches!(host_sends(&mut stream, &mut b), Some(Received::All | Received::Full)));
            arrived.extend(received(&mut b).into_iter().flat_map(|(_, data)| data));
        }
        assert_eq!(arrived, data);
    }
}

#[test]
fn a_guest_is_notified_of_the_end_of_the_host_s_streams_and_refuses_what_it_does_not_know() {
    let (mut b, mut stream) = (driver(B), ::vsock::Stream::new(Address { cid: B, port: 20 }));
    stream.open(99);
    offer(&mut b, 1);
    host_sends(&mut stream, &mut b);
    assert!(answers(&mut b, &mut stream, Operation::Response));
    received(&mut b);
    offer(&mut b, 1);
    // As after an update: the stream is another one, and the table is the guest's.
    b.with(|vsock, io| vsock.reset_all_of(HOST_CID, io));
    let last = received(&mut b).pop().expect("a packet").0;
    assert_eq!((last.operation, last.source), (Some(Operation::Reset), Address { cid: HOST_CID, port: 99 }));
    stream.send(&[1]);
    offer(&mut b, 1);
    assert_eq!(host_sends(&mut stream, &mut b), Some(Received::Refused));
    assert_eq!(stream.phase(), ::vsock::StreamPhase::Closed);
}

#[test]
fn section_5_10_6_6_a_request_that_is_not_allowed_is_answered_by_rst() {
    let (mut a, mut b) = (driver(A), driver(B));
    offer(&mut b, 1);
    assert_eq!(send(&mut b, &mut a, back(header(Operation::Request, 0)), &[]), Some(Received::Refused));
    let [(reset, _)] = &received(&mut b)[..] else { panic!("one packet") };
    assert_eq!(*reset, Header::reset(Address { cid: A, port: 10 }, Address { cid: B, port: 20 }));
    assert!(received(&mut a).is_empty());
}

#[test]
fn section_5_10_6_3_1_too_much_data_resets_both_ends() {
    let (mut a, mut b) = open();
    let data = vec![0; 3000];
    // `a` has room for 100,000 bytes, as it has stated; `b` sends them, and one more.
    for sent in 0..33 {
        offer(&mut a, 4);
        assert_eq!(send(&mut b, &mut a, back(header(Operation::Data, 3000)), &data), Some(Received::All), "{sent}");
        received(&mut a);
    }
    offer(&mut b, 1);
    assert_eq!(send(&mut b, &mut a, back(header(Operation::Data, 1001)), &data), Some(Received::Refused));
    for driver in [&mut a, &mut b] {
        let last = received(driver).pop().expect("a packet").0;
        assert_eq!(last.operation, Some(Operation::Reset));
        assert!(driver.endpoint.virtio_device().connections.all().is_empty());
    }
}

#[test]
fn rst_waits_for_a_buffer_and_the_driver_is_asked_to_notify() {
    let (mut a, mut b) = open();
    while b.with(|vsock, io| io.take(RECEIVE, &mut vsock.buffer)) == Some(true) {}
    assert_eq!(send(&mut a, &mut b, header(Operation::Reset, 0), &[]), Some(Received::All), "it never waits itself");
    assert!(received(&mut b).is_empty());
    offer(&mut b, 1);
    b.notify(RECEIVE);
    let reset = Header::reset(Address { cid: A, port: 10 }, Address { cid: B, port: 20 });
    assert_eq!(received(&mut b), [(reset, vec![])]);
    assert!(b.endpoint.virtio_device().connections.all().is_empty());
}

#[test]
fn a_driver_that_gives_no_buffers_for_rst_sends_no_more() {
    let (mut a, mut b) = (driver(A), driver(B));
    for number in 0..REFUSED {
        let header = Header { destination: Address { cid: 9, port: number as u32 }, ..header(Operation::Request, 0) };
        assert_eq!(send(&mut a, &mut b, header, &[]), Some(Received::Refused));
    }
    let mut chain = Chain::new();
    a.add(TRANSMIT, &packet(&header(Operation::Request, 0), &[]), 0);
    assert_eq!(a.with(|vsock, io| vsock.take(&mut chain, io)), Some(Taken::Blocked));
    offer(&mut a, 1);
    a.notify(RECEIVE);
    assert_eq!(received(&mut a).len(), 1);
    assert!(matches!(a.with(|vsock, io| vsock.take(&mut chain, io)), Some(Taken::Packet(_))));
}

#[test]
fn packets_from_others_and_longer_than_their_chains_are_dropped() {
    let (mut a, _) = open();
    let foreign = Header { source: Address { cid: 9, port: 10 }, ..header(Operation::Data, 1) };
    for (header, data) in [(foreign, &[0][..]), (header(Operation::Data, 2), &[0]), (header(Operation::Data, 0), &[])] {
        let mut chain = Chain::new();
        a.add(TRANSMIT, &packet(&header, data), 0);
        assert_eq!(a.with(|vsock, io| vsock.take(&mut chain, io)), Some(Taken::Dropped));
        a.with(Vsock::done);
        a.with(|vsock, io| vsock.end_sending(true, io));
        assert!(a.collect(TRANSMIT).is_some());
    }
    a.add(TRANSMIT, &[0; HEADER_BYTES - 1], 0);
    assert_eq!(a.with(|vsock, io| vsock.take(&mut Chain::new(), io)), None);
    assert_ne!(a.status() & 64, 0, "it needs a reset");
}

#[test]
fn a_buffer_without_room_for_a_header_needs_a_reset_of_its_own_device_only() {
    let (mut a, mut b) = open();
    while b.with(|vsock, io| io.take(RECEIVE, &mut vsock.buffer)) == Some(true) {}
    b.add(RECEIVE, &[], HEADER_BYTES as u32);
    offer(&mut a, 1);
    assert_eq!(send(&mut a, &mut b, header(Operation::Data, 1), &[7]), None);
    assert_ne!(b.status() & 64, 0);
    assert_eq!(a.status(), 15);
    assert!(received(&mut a).iter().any(|(header, _)| header.operation == Some(Operation::Reset)));
}

#[test]
fn a_guest_that_is_gone_or_reset_is_learned_by_its_peers() {
    let (mut a, mut b) = open();
    a.write(20, AccessSize::Byte, 0);
    assert!(a.endpoint.virtio_device().take_was_reset());
    offer(&mut b, 1);
    b.with(|vsock, io| vsock.reset_all_of(A, io));
    let last = received(&mut b).pop().expect("a packet").0;
    assert_eq!((last.operation, last.source.cid), (Some(Operation::Reset), A));
}

#[test]
fn a_driver_whose_other_ends_are_all_gone_gets_rst_for_each() {
    let (_, mut b) = open();
    offer(&mut b, 2);
    b.with(Vsock::reset_all);
    let last = received(&mut b).pop().expect("a packet").0;
    assert_eq!((last.operation, last.source), (Some(Operation::Reset), Address { cid: A, port: 10 }));
    b.with(Vsock::reset_all);
    assert!(received(&mut b).is_empty());
}

#[test]
fn a_reset_on_the_way_gives_nothing_back() {
    let (mut a, _) = open();
    let mut chain = Chain::new();
    a.add(TRANSMIT, &packet(&header(Operation::Data, 1), &[7]), 0);
    let taken = a.with(|vsock, io| vsock.take(&mut chain, io));
    let Some(Taken::Packet(packet)) = taken else { panic!("{taken:?}") };
    a.start(feature::VERSION_1);
    a.with(|vsock, io| {
        vsock.hold(&packet, io);
        Ok(())
    });
    a.with(Vsock::done);
    a.with(|vsock, io| vsock.refuse(packet.header(), io));
    assert_eq!(a.collect(TRANSMIT), None);
    assert!(a.endpoint.virtio_device().refused.is_empty());
}

#[test]
fn a_connection_and_half_a_packet_go_on_in_another_image() {
    let (mut a, mut b) = open();
    offer(&mut b, 1);
    let data: Vec<u8> = (0..3500).map(|at| at as u8).collect();
    assert_eq!(send(&mut a, &mut b, header(Operation::Data, 3500), &data), Some(Received::Full));
    let before = (a.saved(), b.saved());
    a.hand_over(device(A)).expect("its own state is good");
    b.hand_over(device(B)).expect("its own state is good");
    assert_eq!((a.saved(), b.saved()), before);
    offer(&mut b, 4);
    assert_eq!(pass(&mut a, &mut b), Some(Received::All));
    assert_eq!(received(&mut b).into_iter().flat_map(|(_, data)| data).collect::<Vec<_>>(), data);
}

#[test]
fn states_that_no_device_can_be_in_are_refused() {
    let (mut a, _) = open();
    let good = a.saved();
    let end = good.len();
    // 16 bytes, and one connection of 24.
    for (at, value) in [(end - 40, 9), (end - 32, 2), (end - 30, 1), (end - 28, 2), (end - 12, 4), (end - 5, 0x80)] {
        let mut bad = good.clone();
        bad[at] = value;
        assert!(a.hand_over_from(device(A), &bad).is_err(), "byte {at}");
    }
    assert!(a.hand_over_from(device(A), &good[..end - 1]).is_err());
    assert!(a.hand_over_from(device(B), &good).is_err(), "another guest's");
    assert_eq!(a.hand_over_from(device(A), &good), Ok(()));
}

#[test]
fn one_guest_does_not_take_all_connections_of_another() {
    let (mut a, mut b) = (driver(A), driver(B));
    let mut taken = 0;
    for port in 0..1000 {
        offer(&mut b, 1);
        let request = Header { source: Address { cid: A, port }, ..header(Operation::Request, 0) };
        taken += usize::from(send(&mut a, &mut b, request, &[]) == Some(Received::All));
        received(&mut b);
        if taken == CONNECTIONS_OF_PEER {
            break;
        }
    }
    assert_eq!(taken, CONNECTIONS_OF_PEER);
}
