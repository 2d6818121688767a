// SPDX-License-Identifier: MIT OR Apache-2.0
//! The stream to a server in another guest.

use nbd::{Status, Stream as _};
use vsock::{Address, HOST_CID, Header, Operation, Progress};

use super::super::{Bounded, Socket};

const SERVER: Address = Address { cid: 5, port: 10_809 };

fn port_of_request(socket: &mut Socket) -> u32 {
    let header = socket.stream().next().expect("a request").header;
    assert_eq!((header.operation, header.destination), (Some(Operation::Request), SERVER));
    socket.stream().note_refused(&header);
    header.source.port
}

#[test]
fn a_connection_s_port_is_new_and_identifies_its_stream() {
    for seed in [0, 7, u32::MAX, (1 << 20) - 1] {
        for number in [0, 3, 255] {
            let mut socket = Socket::new(SERVER, number, 256, seed);
            let mut last = None;
            for _ in 0..4 {
                socket.open();
                assert_eq!(socket.status(), Status::Connecting);
                let port = port_of_request(&mut socket);
                assert_eq!((Socket::number_of(port, 256), socket.status()), (number.into(), Status::Closed));
                assert_ne!(last.replace(port), Some(port));
            }
        }
    }
    assert_eq!(Socket::number_of(7, 0), 0);
}

#[test]
fn a_connection_of_the_image_before_goes_on_and_the_next_one_has_another_port() {
    let progress = Progress { peer: SERVER, own_port: 3 + 9 * 256, delivered: 100, room_until: 4196, consumed: 50 };
    let mut socket = Socket::new(SERVER, 3, 256, 9);
    assert!(socket.resume(&progress) && socket.status() == Status::Open);
    assert_eq!(socket.send(&[1; 10]), 10);
    socket.open();
    let reset = socket.stream().next().expect("the end of the one before").header;
    assert_eq!((reset.operation, reset.source.port), (Some(Operation::Reset), progress.own_port));
    socket.stream().note_sent(&reset, 0);
    assert_ne!(port_of_request(&mut socket), progress.own_port);
}

#[test]
fn a_connection_of_another_stream_does_not_go_on() {
    let progress = Progress { peer: SERVER, own_port: 3 + 9 * 256, delivered: 0, room_until: 0, consumed: 0 };
    let other = Address { port: 10_810, ..SERVER };
    for (peer, number, own_port) in [(other, 3, 3 + 9 * 256), (SERVER, 4, 3 + 9 * 256), (SERVER, 255, u32::MAX)] {
        let mut socket = Socket::new(SERVER, number, 256, 9);
        assert!(!socket.resume(&Progress { peer, own_port, ..progress }), "{peer:?} {number} {own_port}");
        assert_eq!(socket.status(), Status::Closed);
    }
}

#[test]
fn of_a_turn_that_is_over_something_has_come_and_the_rest_comes_in_the_next() {
    let progress = Progress { peer: SERVER, own_port: 3, delivered: 0, room_until: 4096, consumed: 0 };
    let mut socket = Socket::new(SERVER, 3, 256, 0);
    assert!(socket.resume(&progress));
    let (destination, operation) = (Address { cid: HOST_CID, port: 3 }, Some(Operation::Data));
    let data = Header { source: SERVER, destination, bytes: 8, operation, flags: 0, buffer_bytes: 4096, consumed: 0 };
    socket.stream().accept(&data).expect("a place");
    socket.stream().note_received(8);
    let mut piece = [0; 3];
    let mut turn = Bounded::new(&mut socket, || true);
    assert_eq!((turn.receive(&mut piece), turn.has_left_some()), (3, false));
    assert_eq!((turn.receive(&mut piece), turn.send(&piece), turn.has_left_some()), (0, 0, true));
    let mut turn = Bounded::new(&mut socket, || false);
    assert_eq!([3, 2, 0].map(|_| turn.receive(&mut piece)), [3, 2, 0]);
    assert_eq!((turn.send(&piece), turn.has_left_some()), (3, false));
}
