// SPDX-License-Identifier: MIT OR Apache-2.0
//! The stream to a server in another guest.

use nbd::{Status, Stream as _};
use vsock::{Address, Operation};

use super::super::Socket;

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
