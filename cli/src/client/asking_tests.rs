// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of a client over a line that loses, repeats and garbles bytes, with a host that answers as a real one
//! does: it refuses bytes that are no request under the number 0.

use std::borrow::Cow;
use std::io::Write as _;
use std::iter;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::TestRng;
use seal::{Portable, Sha256, Unpacker};
use wire::{
    Decoder, Event, EventKind, Frame, MAX_FRAME_BYTES, Refusal, RefusalCode, ReplyBody, Request, RequestBody, Response,
    Stream, Subscription, UploadKind, encode,
};

use super::asking::Patience;
use super::{Client, MAX_WAITING, NoAnswer, Unclear};
use crate::testing::host_info;

/// The data that the host has received of its operator.
#[derive(Debug, Default)]
struct Kept {
    file: Vec<u8>,
    expected: Vec<u8>,
    unpacker: Unpacker,
    starts: u32,
}

/// The noise of the line, either way.
#[derive(Clone, Debug, Default)]
struct Noise {
    /// The numbers of bytes of a thousand that are lost, that come twice, and that are changed.
    lost: u32,
    repeated: u32,
    garbled: u32,
    /// A second talker's frames come in between.
    has_second_talker: bool,
}

struct FakeHost {
    line: UnixStream,
    decoder: Box<Decoder>,
    noise: Noise,
    random: TestRng,
    kept: Arc<Mutex<Kept>>,
    /// Answers to such requests are lost.
    loses: fn(&RequestBody) -> bool,
}

impl FakeHost {
    fn serve(mut self) {
        use std::io::Read as _;
        let mut buffer = [0; 512];
        while let Ok(count @ 1..) = self.line.read(&mut buffer) {
            let bytes = self.through(&buffer[..count]);
            for byte in bytes {
                match self.decoder.push_byte(byte) {
                    None => {}
                    Some(Ok(Frame::Request(request))) => self.answer(request),
                    Some(Ok(_)) => self.refuse("a host takes requests only".to_owned()),
                    Some(Err(error)) => self.refuse(error.to_string()),
                }
            }
        }
    }

    /// Returns the bytes that arrive when these are sent.
    fn through(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut arrived = Vec::new();
        for &byte in bytes {
            let dice = self.random.random_range(0..1000);
            let Noise { lost, repeated, garbled, .. } = self.noise;
            match dice {
                _ if dice < lost => {}
                _ if dice < lost + repeated => arrived.extend([byte, byte]),
                _ if dice < lost + repeated + garbled => arrived.push(self.random.random_range(0..=255) as u8),
                _ => arrived.push(byte),
            }
        }
        arrived
    }

    fn send(&mut self, frame: &Frame<'_>) {
        use std::io::Write as _;
        let bytes = encode(frame, &mut [0; MAX_FRAME_BYTES]).expect("it fits").to_vec();
        let bytes = self.through(&bytes);
        let _ = self.line.write_all(&bytes);
    }

    fn refuse(&mut self, reason: String) {
        let refusal = Refusal { code: RefusalCode::Protocol, reason, hint: String::new() };
        self.send(&Frame::Response(Response { id: 0, result: Err(refusal) }));
    }

    fn answer(&mut self, Request { id, body }: Request) {
        if self.noise.has_second_talker {
            let event = wire::Event { sequence: 0, time_ns: 0, kind: EventKind::HostReady };
            self.send(&Frame::Stream(Stream::Event(std::borrow::Cow::Owned(event))));
            self.send(&Frame::Response(Response { id: id ^ 0x4000, result: Ok(ReplyBody::Done) }));
        }
        let is_lost = (self.loses)(&body);
        let result = Ok(self.carried_out(body));
        if !is_lost {
            self.send(&Frame::Response(Response { id, result }));
        }
    }

    fn carried_out(&mut self, body: RequestBody) -> ReplyBody {
        let mut kept = self.kept.lock().expect("kept");
        match body {
            RequestBody::Info => ReplyBody::Info(host_info()),
            RequestBody::VmStart { .. } => {
                kept.starts += 1;
                ReplyBody::Done
            }
            RequestBody::UploadBegin { sha256, .. } => {
                let mut hash = Sha256::new(Portable);
                hash.update(&kept.expected);
                assert_eq!(sha256, hash.finish());
                ReplyBody::Received { next_offset: kept.file.len() as u64 }
            }
            RequestBody::UploadData { offset, bytes } => {
                if offset == kept.file.len() as u64 {
                    kept.file.extend(bytes);
                }
                ReplyBody::Received { next_offset: kept.file.len() as u64 }
            }
            RequestBody::UploadPacked { offset, bytes, packed, begins } => {
                if offset == kept.file.len() as u64 {
                    let end = kept.file.len() + bytes as usize;
                    let from = kept.file.len();
                    kept.file.resize(end, 0);
                    let Kept { unpacker, file, .. } = &mut *kept;
                    if begins {
                        *unpacker = Unpacker::default();
                    }
                    assert_eq!(unpacker.unpack(&packed, &mut file[from..]), Ok(()));
                }
                ReplyBody::Received { next_offset: kept.file.len() as u64 }
            }
            _ => ReplyBody::Done,
        }
    }
}

/// Returns a client, and the data that its host keeps.
fn client(noise: Noise, seed: u8, loses: fn(&RequestBody) -> bool) -> (Client, Arc<Mutex<Kept>>) {
    let (ours, line) = UnixStream::pair().expect("a pair");
    let random = TestRng::from_seed(prop::test_runner::RngAlgorithm::ChaCha, &[seed; 32]);
    let kept = Arc::<Mutex<Kept>>::default();
    let host = FakeHost { line, decoder: Box::default(), noise, random, kept: kept.clone(), loses };
    thread::spawn(move || host.serve());
    let mut client = Client::over(ours);
    let [repeat, unread, piece] = [10, 2, 20].map(Duration::from_millis);
    client.patience = Patience { repeat, unread, piece };
    (client, kept)
}

fn quiet() -> Noise {
    Noise::default()
}

#[test]
fn a_lost_answer_to_a_question_is_asked_for_again() {
    use std::sync::atomic::{AtomicU32, Ordering};
    static ASKED: AtomicU32 = AtomicU32::new(0);
    let first_two = |body: &RequestBody| *body == RequestBody::Info && ASKED.fetch_add(1, Ordering::Relaxed) < 2;
    let (mut client, _) = client(quiet(), 0, first_two);
    assert_eq!(client.info().expect("the third answer"), host_info());
    assert_eq!(ASKED.load(Ordering::Relaxed), 3);
}

#[test]
fn an_order_whose_answer_is_lost_is_not_repeated_and_the_error_states_that() {
    let (mut client, kept) = client(quiet(), 0, |body| matches!(body, RequestBody::VmStart { .. }));
    let order = RequestBody::VmStart { name: "web".to_owned() };
    let error = client.request_within(Duration::from_millis(100), order).expect_err("lost");
    assert!(error.is::<Unclear>() && error.to_string().contains("may have been carried out or not"), "{error}");
    // The host has read the order before the question, however late.
    assert_eq!(client.info().expect("the client goes on"), host_info());
    assert_eq!(kept.lock().expect("kept").starts, 1);
}

#[test]
fn an_unresponsive_host_is_named_with_the_bytes_that_came_instead() {
    let (mut client, _) = client(quiet(), 0, |_| true);
    let error = client.request_within(Duration::from_millis(50), RequestBody::Info).expect_err("unresponsive");
    assert!(error.is::<NoAnswer>() && error.to_string().contains("did not answer within"), "{error}");
}

#[test]
fn a_line_that_echoes_is_recognized() {
    let (ours, mut echo) = UnixStream::pair().expect("a pair");
    let mut back = echo.try_clone().expect("a second handle");
    thread::spawn(move || std::io::copy(&mut echo, &mut back));
    let mut client = Client::over(ours);
    let error = client.request_within(Duration::from_millis(50), RequestBody::Info).expect_err("an echo");
    assert!(error.to_string().contains("the line echoes what is sent"), "{error}");
}

#[test]
fn output_without_end_while_an_answer_is_waited_for_costs_bounded_memory_and_is_counted() {
    let (ours, mut theirs) = UnixStream::pair().expect("a pair");
    let mut client = Client::over(ours);
    let flood = thread::spawn(move || {
        let console = Stream::Console { name: "web".into(), bytes: b"0123456789"[..].into() };
        let event = Stream::Event(Cow::Owned(Event { sequence: 0, time_ns: 0, kind: EventKind::HostReady }));
        let many = iter::repeat_n(Frame::Stream(console), MAX_WAITING + 5);
        let answer = Frame::Response(Response { id: 1, result: Ok(ReplyBody::Done) });
        for frame in many.chain([Frame::Stream(event), answer]) {
            theirs.write_all(encode(&frame, &mut [0; MAX_FRAME_BYTES]).expect("it fits")).expect("sent");
        }
        theirs
    });
    client.order(RequestBody::VmStart { name: "web".to_owned() }).expect("the answer");
    assert_eq!((client.streams.len(), client.take_lost_output()), (MAX_WAITING + 1, 50), "the event is kept");
    assert_eq!(client.take_lost_output(), 0);
    drop(flood.join());
}

#[test]
fn an_order_that_the_host_could_not_read_is_reported_soon() {
    let (ours, _line) = UnixStream::pair().expect("a pair");
    let mut client = Client::over(ours);
    let refusal = Refusal { code: RefusalCode::Protocol, reason: "noise".to_owned(), hint: String::new() };
    client.responses.push_back(Response { id: 0, result: Err(refusal) });
    let order = RequestBody::VmStart { name: "web".to_owned() };
    let error = client.request_within(Duration::from_secs(100), order).expect_err("not read");
    assert!(error.is::<Unclear>() && error.to_string().contains("could not read a request (noise)"), "{error}");
}

#[test]
fn a_host_that_knows_no_choice_of_consoles_is_asked_for_all() {
    let (ours, mut theirs) = UnixStream::pair().expect("a pair");
    let mut client = Client::over(ours);
    client.patience = Patience { unread: Duration::from_millis(200), ..client.patience };
    let host = thread::spawn(move || {
        use std::io::Read as _;
        let (mut decoder, mut buffer, mut last) = (Decoder::default(), [0; 512], None);
        while let Ok(count @ 1..) = theirs.read(&mut buffer) {
            decoder.push(&buffer[..count], |frame| {
                let Ok(Frame::Request(Request { id, body })) = frame else { panic!("{frame:?}") };
                let refusal = Refusal { code: RefusalCode::Protocol, reason: "?".to_owned(), hint: String::new() };
                let response = match body {
                    RequestBody::Subscribe(wanted) => {
                        last = Some(wanted);
                        Response { id, result: Ok(ReplyBody::Done) }
                    }
                    _ => Response { id: 0, result: Err(refusal) },
                };
                let frame = Frame::Response(response);
                theirs.write_all(encode(&frame, &mut [0; MAX_FRAME_BYTES]).expect("it fits")).expect("sent");
            });
        }
        last
    });
    let events = Subscription { events: true, ..Subscription::default() };
    assert!(!client.subscribe_consoles(events, &["web"]).expect("subscribed"), "the choice is not known there");
    drop(client);
    assert_eq!(host.join().expect("the host"), Some(Subscription { consoles: true, ..events }));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Some bytes in a thousand, either way: most frames of an upload's size are damaged.
    #[test]
    fn questions_are_answered_over_a_noisy_line(
        lost in 0..2u32, repeated in 0..2u32, garbled in 0..2u32, has_second_talker: bool, seed: u8,
    ) {
        let noise = Noise { lost, repeated, garbled, has_second_talker };
        let (mut client, _) = client(noise, seed, |_| false);
        for _ in 0..20 {
            prop_assert_eq!(client.info().map_err(|error| error.to_string()), Ok(host_info()));
        }
    }

    #[test]
    fn a_file_arrives_whole_over_a_noisy_line(
        lost in 0..2u32, garbled in 0..2u32, seed: u8, size in 0..12_000usize, packs: bool,
    ) {
        let file: Vec<u8> = (0..size).map(|at| (at * 7 + at / 251) as u8).collect();
        let noise = Noise { lost, garbled, ..quiet() };
        let (mut client, kept) = client(noise, seed, |_| false);
        client.packs = packs;
        kept.lock().expect("kept").expected = file.clone();
        client.upload(UploadKind::Image, &file, |_| {}).map_err(|error| TestCaseError::fail(format!("{error:#}")))?;
        prop_assert!(kept.lock().expect("kept").file == file);
    }

    #[test]
    fn an_order_is_carried_out_once_at_most(garbled in 0..20u32, lost in 0..20u32, seed: u8) {
        let noise = Noise { lost, garbled, ..quiet() };
        let (mut client, kept) = client(noise, seed, |_| false);
        let order = RequestBody::VmStart { name: "web".to_owned() };
        let result = client.request_within(Duration::from_millis(30), order);
        let starts = kept.lock().expect("kept").starts;
        prop_assert!(starts <= 1);
        prop_assert!(result.is_err() || starts == 1);
    }
}
