// SPDX-License-Identifier: MIT OR Apache-2.0
//! A decoder's results on good and bad streams.

use alloc::borrow::Cow;
use std::string::ToString;
use std::vec::Vec;
use std::{format, vec};

use super::{decoded, encoded, framed, samples, to_host};
use crate::exit_code::ExitCode;
use crate::*;

#[test]
fn every_message_comes_back_as_it_was_sent() {
    for frame in samples::all() {
        assert_eq!(decoded(&encoded(&frame)), [Ok(frame)]);
    }
}

#[test]
fn a_stream_of_messages_is_found_byte_by_byte() {
    let frames = samples::all();
    let stream: Vec<u8> = frames.iter().flat_map(encoded).collect();
    let mut decoder = Decoder::new();
    let found: Vec<_> = stream.iter().filter_map(|&byte| decoder.push_byte(byte)).collect();
    assert_eq!(found, frames.into_iter().map(Ok).collect::<Vec<_>>());
    assert_eq!(decoder.finish(), None);
}

#[test]
fn a_host_finds_the_same_requests_and_nothing_else() {
    for frame in samples::all() {
        let found = to_host(&encoded(&frame));
        let expected = match frame {
            Frame::Request(request) => Some(request),
            Frame::Response(_) | Frame::Stream(_) => None,
        };
        assert_eq!(found, [Ok(expected)]);
    }
    let found = to_host(&framed(&[VERSION, 9, 9]));
    assert_eq!(found, [Err(FrameError::Malformed)]);
}

#[test]
fn a_delimiter_more_means_nothing() {
    let frame = Frame::Request(Request { id: 1, body: RequestBody::Info });
    let stream = [&[0, 0][..], &encoded(&frame), &[0]].concat();
    assert_eq!(decoded(&stream), [Ok(frame)]);
}

#[test]
fn garbage_costs_nothing_behind_the_next_delimiter() {
    let frame = Frame::Request(Request { id: 1, body: RequestBody::PowerOff });
    let stream = [b"root login:\0", &encoded(&frame)[..]].concat();
    assert_eq!(decoded(&stream), [Err(FrameError::Garbage { bytes: 11 }), Ok(frame)]);
}

#[test]
fn a_frame_cut_short_is_truncated() {
    assert_eq!(decoded(&[3, 1, 1, 0]), [Err(FrameError::Truncated { bytes: 2 })]);
    let mut decoder = Decoder::new();
    decoder.push(&[9, 1, 1], |_| panic!("no frame is complete"));
    assert_eq!(decoder.finish(), Some(FrameError::Truncated { bytes: 3 }));
}

#[test]
fn an_oversize_frame_is_reported_once_and_skipped() {
    let frame = Frame::Request(Request { id: 1, body: RequestBody::Info });
    let stream = [&vec![1; 3 * MAX_FRAME_BYTES][..], &[0], &encoded(&frame)].concat();
    assert_eq!(decoded(&stream), [Err(FrameError::Oversize), Ok(frame)]);
}

#[test]
fn a_frame_of_exactly_the_bound_is_accepted() {
    let text = |bytes: usize| {
        let reason = "x".repeat(bytes);
        let event = Event { sequence: 0, time_ns: 0, kind: EventKind::Garbage { reason } };
        Frame::Stream(Stream::Event(Cow::Owned(event)))
    };
    let longest = (0..MAX_FRAME_BYTES).rev().find(|&n| encode(&text(n), &mut [0; MAX_FRAME_BYTES]).is_ok());
    let bytes = encoded(&text(longest.expect("some text fits")));
    assert_eq!(bytes.len(), MAX_FRAME_BYTES);
    assert_eq!(decoded(&bytes), [Ok(text(longest.unwrap_or(0)))]);
}

#[test]
fn a_damaged_frame_states_both_checksums() {
    let mut bytes = encoded(&Frame::Request(Request { id: 1, body: RequestBody::PowerOff }));
    bytes[2] ^= 2;
    assert!(matches!(decoded(&bytes)[..], [Err(FrameError::BadChecksum { stated, computed })] if stated != computed));
}

#[test]
fn another_version_is_distinguished_from_damage() {
    assert_eq!(decoded(&framed(&[VERSION + 1, 9, 9])), [Err(FrameError::UnknownVersion { found: VERSION + 1 })]);
}

#[test]
fn a_whole_frame_without_a_message_is_malformed() {
    let extra = [VERSION, 0x82, 0, 0x82, 1, 0, 77];
    let indefinite = [VERSION, 0x9f, 0, 0x82, 1, 0, 0xff];
    let lists_of_lists = [VERSION, 0x82, 0, 0x82, 1, 0x82, 0x82];
    let too_long = [VERSION, 0x82, 0, 0x82, 1, 0x82, 11, 0x9b, 255, 255, 255, 255, 255, 255, 255, 255];
    for content in [&[VERSION, 250][..], &extra, &indefinite, &lists_of_lists, &too_long, &[VERSION, 0x82, 0, 1]] {
        let content = [content, &[]].concat();
        assert_eq!(decoded(&framed(&content)), [Err(FrameError::Malformed)], "{content:?}");
    }
}

#[test]
fn errors_state_the_remedy() {
    let error = FrameError::UnknownVersion { found: 9 };
    let text = format!("a message of version 9, this side speaks version {VERSION}; use tool and host of one release");
    assert_eq!(error.to_string(), text);
}

#[test]
fn a_buffer_too_small_is_refused() {
    let frame = Frame::Stream(Stream::Console { name: "a".into(), bytes: vec![7; 100].into() });
    assert_eq!(encode(&frame, &mut [0; 64]), Err(EncodeError { available_bytes: 64 }));
    assert_eq!(encode(&frame, &mut []), Err(EncodeError { available_bytes: 0 }));
}

#[test]
fn text_is_cut_between_characters() {
    assert_eq!(bounded("aé", 2), "a");
    assert_eq!(bounded("aé", 3), "aé");
}

#[test]
fn exit_codes_survive_the_emulator() {
    for code in ExitCode::ALL {
        assert_eq!(ExitCode::from_process_status(code.process_status()), Some(code));
    }
    assert_eq!(ExitCode::Success.process_status(), 33);
    assert_eq!([0, 1, 137].map(ExitCode::from_process_status), [None; 3]);
}
