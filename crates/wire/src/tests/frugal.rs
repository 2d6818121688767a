// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages written without allocation equal those written with it.

use std::string::ToString;
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::{encoded, samples};
use crate::frugal::{Asked, BorrowedInfo, Listener, MAX_QUESTION_BYTES, Question, Reply};
use crate::*;

fn heard(bytes: &[u8]) -> Vec<Result<Question, FrameError>> {
    let mut listener = Listener::new();
    bytes.iter().filter_map(|&byte| listener.push_byte(byte)).collect()
}

fn question(id: u32, body: RequestBody) -> Vec<u8> {
    encoded(&Frame::Request(Request { id, body }))
}

fn written(id: u32, reply: &Reply<'_>) -> Vec<u8> {
    let mut buffer = [0; MAX_FRAME_BYTES];
    reply.encode(id, &mut buffer).expect("it fits").to_vec()
}

fn answer(id: u32, result: Result<ReplyBody, Refusal>) -> Vec<u8> {
    encoded(&Frame::Response(Response { id, result }))
}

#[test]
fn every_question_is_understood_or_known_by_its_number() {
    for frame in samples::all() {
        let Frame::Request(Request { id, body }) = &frame else {
            assert!(heard(&encoded(&frame))[0].is_err(), "{frame:?}");
            continue;
        };
        let asked = match body {
            RequestBody::Info => Asked::Info,
            RequestBody::PowerOff => Asked::PowerOff,
            RequestBody::Log { from_sequence, limit } => Asked::Log { from_sequence: *from_sequence, limit: *limit },
            _ => Asked::Other,
        };
        let expected = match body {
            // None of a host that has ended.
            RequestBody::Signed(_) => Err(FrameError::Oversize),
            _ => Ok(Question { id: *id, asked }),
        };
        assert_eq!(heard(&encoded(&frame)), [expected], "{body:?}");
    }
}

#[test]
fn a_long_request_is_refused_and_the_next_one_heard() {
    let long = question(1, RequestBody::ConsoleInput { name: "a".into(), bytes: vec![1; MAX_QUESTION_BYTES] });
    let bytes = [long, question(2, RequestBody::Info)].concat();
    assert_eq!(heard(&bytes), [Err(FrameError::Oversize), Ok(Question { id: 2, asked: Asked::Info })]);
}

#[test]
fn answers_are_those_of_a_living_host() {
    assert_eq!(written(7, &Reply::Done), answer(7, Ok(ReplyBody::Done)));
    let info = samples::host_info();
    let features: Vec<&str> = info.features.iter().map(|feature| &**feature).collect();
    let keys: Vec<&str> = info.trusted_keys.iter().map(|key| &**key).collect();
    let borrowed = BorrowedInfo {
        version: &info.version,
        image_bytes: info.image_bytes,
        cpus: info.cpus,
        memory_total_bytes: info.memory_total_bytes,
        memory_free_bytes: info.memory_free_bytes,
        host_overhead_bytes: info.host_overhead_bytes,
        uptime_ns: info.uptime_ns,
        virtualization: info.virtualization,
        features: &features,
        apic_mode: info.apic_mode,
        tsc_hz: info.tsc_hz,
        generation: info.generation,
        build: &info.build,
        security_version: info.security_version,
        permits_downgrade: info.permits_downgrade,
        oldest_handover: info.oldest_handover,
        newest_handover: info.newest_handover,
        trusted_keys: &keys,
        unclaimed_nmis: info.unclaimed_nmis,
        unexpected_interrupts: info.unexpected_interrupts,
        last_unexpected_vector: info.last_unexpected_vector,
        signer: info.signer.as_deref(),
    };
    assert_eq!(written(300, &Reply::Info(borrowed)), answer(300, Ok(ReplyBody::Info(info))));
    let (reason, hint) = ("it has ended", "reset it");
    let refusal = Refusal { code: RefusalCode::Failed, reason: reason.to_string(), hint: hint.to_string() };
    assert_eq!(written(9, &Reply::Refused { code: RefusalCode::Failed, reason, hint }), answer(9, Err(refusal)));
}

#[test]
fn a_page_of_the_log_is_that_of_a_living_host() {
    let record =
        LogRecord { sequence: 3, time_ns: 1, cpu: 2, level: Level::Error, module: "a".into(), text: "b".into() };
    for records in [vec![], vec![record.clone()], vec![record.clone(), record]] {
        let frugal = written(u32::MAX, &Reply::Log { records: &records, next_sequence: 5 });
        assert_eq!(frugal, answer(u32::MAX, Ok(ReplyBody::Log { records, next_sequence: 5 })));
    }
}

#[test]
fn an_answer_that_does_not_fit_is_refused() {
    assert!(Reply::Done.encode(1, &mut [0; 4]).is_err());
}

proptest! {
    #[test]
    fn any_bytes_are_questions_or_errors(bytes in proptest::collection::vec(any::<u8>(), 0..500)) {
        heard(&bytes);
    }

    #[test]
    fn a_question_is_heard_after_any_noise(mut bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        bytes.push(0);
        bytes.extend(question(77, RequestBody::Info));
        let last = heard(&bytes).pop();
        prop_assert_eq!(last, Some(Ok(Question { id: 77, asked: Asked::Info })));
    }
}
