// SPDX-License-Identifier: MIT OR Apache-2.0
//! Streams that a guest opens to a port of the host's.

use super::streams::{Guest, PEER};
use crate::*;

/// A connection that the guest has opened to a port of the host's.
pub fn accepted() -> (Stream, Guest) {
    let (mut stream, mut guest) = (Stream::new(Address { cid: 0, port: 0 }), Guest::new());
    guest.host_port = 9;
    let request = guest.header(Operation::Request, 0);
    assert_eq!((guest.table.send(&request, true), stream.is_free()), (Ok(true), true));
    stream.answer(&request);
    assert!(!stream.is_free());
    assert!(guest.take(&mut stream, 0));
    assert_eq!(guest.table.all()[0].phase, Phase::Open);
    (stream, guest)
}

#[test]
fn s5_10_6_6_a_guest_opens_a_stream_to_a_port_of_the_host() {
    let (mut stream, mut guest) = accepted();
    assert_eq!((stream.phase(), stream.peer()), (StreamPhase::Open, PEER));
    assert_eq!(guest.send(&mut stream, Operation::Data, &[5, 6]), Ok(()));
    let mut into = [0; 9];
    assert_eq!((stream.receive(&mut into), stream.send(&[7])), (2, 1));
    assert!(guest.take(&mut stream, 9));
    assert_eq!(guest.received, [7]);
    assert_eq!(guest.send(&mut stream, Operation::Shutdown, &[]), Ok(()));
    assert!(!stream.is_free(), "its guest waits for RST");
    stream.reset();
    assert!(guest.take(&mut stream, 0));
    assert!(guest.is_reset && stream.is_free());
    let again = guest.header(Operation::Request, 0);
    stream.answer(&again);
    assert_eq!(stream.next().expect("the answer").header.operation, Some(Operation::Response));
}

#[test]
fn data_that_comes_before_the_answer_has_gone_is_taken_and_a_second_request_ends_the_stream() {
    let (mut stream, mut guest) = (Stream::new(PEER), Guest::new());
    guest.host_port = 9;
    let request = guest.header(Operation::Request, 0);
    stream.answer(&request);
    assert_eq!(stream.accept(&guest.header(Operation::Data, 1)).map(|places| places[0].len()), Ok(1));
    assert_eq!(stream.accept(&request).map(drop), Err(Refused));
    assert_eq!((stream.phase(), stream.next()), (StreamPhase::Closed, None));
    assert!(stream.is_free());
}

#[test]
fn no_stream_goes_on_from_an_impossible_progress_or_amid_a_transfer() {
    let (mut stream, mut guest) = accepted();
    let progress = stream.progress().expect("nothing is on its way");
    assert!(!stream.clone().resume(&Progress { room_until: progress.delivered.wrapping_sub(1), ..progress }));
    assert_eq!(guest.send(&mut stream, Operation::Data, &[1]), Ok(()));
    assert_eq!((stream.progress(), stream.receive(&mut [0])), (None, 1));
    assert!(stream.progress().is_some());
    assert_eq!((stream.send(&[1]), stream.progress()), (1, None));
    let request = guest.header(Operation::Request, 0);
    stream.note_gone();
    stream.answer(&request);
    assert_eq!(stream.progress(), None, "the answer is not sent");
}
