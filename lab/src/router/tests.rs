// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of sharing, without sockets.

use std::borrow::Cow;

use proptest::prelude::*;
use wire::{Event, EventKind, Level, LogRecord, Signed, Stream};

use super::*;

/// Messages in some bytes.
fn frames(bytes: &[u8]) -> Vec<Frame<'static>> {
    let mut frames = Vec::new();
    Decoder::new().push(bytes, |result| frames.push(result.expect("the router sends whole frames")));
    frames
}

fn bytes(frame: Frame<'_>) -> Vec<u8> {
    encoded(&frame).expect("it fits")
}

fn request(id: u32, body: RequestBody) -> Vec<u8> {
    bytes(Frame::Request(Request { id, body }))
}

/// The requests that wait for the host.
fn requests(router: &mut Router) -> Vec<Request> {
    let is_request = |frame| if let Frame::Request(request) = frame { Some(request) } else { None };
    frames(&router.to_host.take()).into_iter().filter_map(is_request).collect()
}

fn received(router: &mut Router, id: ClientId) -> Vec<Frame<'static>> {
    frames(&router.client(id).expect("connected").outbox.take())
}

fn answer(router: &mut Router, id: u32) {
    router.host_bytes(&bytes(Frame::Response(Response { id, result: Ok(ReplyBody::Done) })));
}

/// A router with a host that has answered its greeting.
fn ready() -> Router {
    let mut router = Router::default();
    router.greet();
    let greeting = requests(&mut router);
    answer(&mut router, greeting[0].id);
    assert_eq!(router.take_happened(), [What::Ready]);
    router
}

fn done(id: u32) -> Frame<'static> {
    Frame::Response(Response { id, result: Ok(ReplyBody::Done) })
}

#[test]
fn what_is_signed_passes_as_it_is_and_its_streams_go_to_its_sender() {
    let mut router = ready();
    let (first, second) = (router.connect(), router.connect());
    let wanted = Subscription { log: true, ..Subscription::default() };
    let body = RequestBody::Subscribe(wanted).to_bytes();
    let signed = RequestBody::Signed(Signed { session: 1, sequence: 1, signature: [1; 64], body });
    router.client_bytes(first, &request(7, signed.clone()));
    let asked = requests(&mut router);
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].body, signed);
    answer(&mut router, asked[0].id);
    assert_eq!(received(&mut router, first), [done(7)]);
    let log = LogRecord {
        sequence: 0,
        time_ns: 0,
        cpu: 0,
        level: Level::Info,
        module: Cow::Borrowed("start"),
        text: Cow::Borrowed("a line"),
    };
    router.host_bytes(&bytes(Frame::Stream(Stream::Log(log))));
    assert_eq!(received(&mut router, first).len(), 1);
    assert!(received(&mut router, second).is_empty());
}

#[test]
fn answers_go_to_the_clients_that_asked_under_their_own_numbers() {
    let mut router = ready();
    let (first, second) = (router.connect(), router.connect());
    router.client_bytes(first, &request(1, RequestBody::PowerOff));
    router.client_bytes(second, &request(1, RequestBody::Info));
    let asked = requests(&mut router);
    assert_eq!(
        asked.iter().map(|request| &request.body).collect::<Vec<_>>(),
        [&RequestBody::PowerOff, &RequestBody::Info]
    );
    assert_ne!(asked[0].id, asked[1].id);
    answer(&mut router, asked[1].id);
    assert_eq!(received(&mut router, second), [done(1)]);
    assert_eq!(received(&mut router, first), []);
    answer(&mut router, asked[0].id);
    assert_eq!(received(&mut router, first), [done(1)]);
}

#[test]
fn requests_wait_for_a_host_that_boots() {
    let mut router = Router::default();
    let client = router.connect();
    router.client_bytes(client, &request(9, RequestBody::Info));
    router.greet();
    let greeting = requests(&mut router);
    assert!(matches!(greeting[..], [Request { body: RequestBody::Subscribe(_), .. }]));
    router.host_bytes(b"noise of the firmware\0");
    assert_eq!(router.take_happened(), []);
    answer(&mut router, greeting[0].id);
    assert!(matches!(requests(&mut router)[..], [Request { body: RequestBody::Info, .. }]));
}

#[test]
fn a_greeting_is_repeated_until_it_is_answered() {
    let mut router = Router::default();
    let greetings = [0, 1].map(|_| {
        router.greet();
        requests(&mut router).len()
    });
    assert_eq!(greetings, [1, 1]);
    let mut router = ready();
    router.greet();
    assert!(router.to_host.is_empty());
}

#[test]
fn a_greeting_that_the_host_could_not_read_is_sent_again() {
    let mut router = Router::default();
    router.greet();
    requests(&mut router);
    let refusal = Refusal { code: RefusalCode::Protocol, reason: "cut off".to_owned(), hint: String::new() };
    router.host_bytes(&bytes(Frame::Response(Response { id: 0, result: Err(refusal) })));
    assert_eq!(router.take_happened(), [], "it has subscribed to nothing yet");
    router.greet();
    let greeting = requests(&mut router);
    assert!(matches!(greeting[..], [Request { body: RequestBody::Subscribe(_), .. }]));
    answer(&mut router, greeting[0].id);
    assert_eq!(router.take_happened(), [What::Ready]);
}

#[test]
fn a_client_that_sends_garbage_is_notified_and_dropped_and_the_host_never_notices() {
    let mut router = ready();
    let (bad, good) = (router.connect(), router.connect());
    router.client_bytes(bad, b"GET / HTTP/1.1\0");
    let Frame::Response(Response { id: 0, result: Err(refusal) }) = received(&mut router, bad).remove(0) else {
        panic!("the client is notified");
    };
    assert_eq!(refusal.code, RefusalCode::Protocol);
    assert!(refusal.reason.contains("garbage"), "{}", refusal.reason);
    assert!(router.client(bad).is_some_and(|client| client.is_leaving));
    // Its later input is not checked.
    router.client_bytes(bad, &request(1, RequestBody::PowerOff));
    assert!(router.to_host.is_empty());
    router.client_bytes(good, &request(1, RequestBody::Info));
    assert_eq!(requests(&mut router).len(), 1);
}

#[test]
fn a_client_may_not_speak_as_a_host() {
    let mut router = ready();
    let client = router.connect();
    router.client_bytes(client, &bytes(done(1)));
    assert!(router.client(client).is_some_and(|client| client.is_leaving));
}

#[test]
fn the_host_is_asked_for_the_log_only_while_a_client_wants_it() {
    let mut router = ready();
    let client = router.connect();
    router.client_bytes(
        client,
        &request(1, RequestBody::Subscribe(Subscription { log: true, ..Subscription::default() })),
    );
    assert_eq!(received(&mut router, client), [done(1)]);
    let wanted = |router: &mut Router| match &requests(router)[..] {
        [Request { body: RequestBody::Subscribe(wanted), .. }] => *wanted,
        other => panic!("one subscription, not {other:?}"),
    };
    assert!(wanted(&mut router).log);
    router.disconnect(client);
    assert!(!wanted(&mut router).log);
}

#[test]
fn streams_go_to_the_clients_that_subscribed() {
    let mut router = ready();
    let (events, nothing) = (router.connect(), router.connect());
    router.client_bytes(
        events,
        &request(1, RequestBody::Subscribe(Subscription { events: true, ..Subscription::default() })),
    );
    received(&mut router, events);
    let event = Event { sequence: 0, time_ns: 0, kind: EventKind::HostReady };
    let record =
        LogRecord { sequence: 0, time_ns: 0, cpu: 0, level: Level::Info, module: "a".into(), text: "b".into() };
    router.host_bytes(&bytes(Frame::Stream(Stream::Event(Cow::Borrowed(&event)))));
    router.host_bytes(&bytes(Frame::Stream(Stream::Log(record))));
    assert_eq!(received(&mut router, events), [Frame::Stream(Stream::Event(Cow::Borrowed(&event)))]);
    assert_eq!(received(&mut router, nothing), []);
    assert_eq!(router.take_happened(), [What::Event(event)]);
}

#[test]
fn a_client_gets_the_consoles_of_the_guests_that_it_has_chosen() {
    let mut router = ready();
    let console = |name: &'static str| Frame::Stream(Stream::Console { name: name.into(), bytes: b"x"[..].into() });
    router.host_bytes(&[bytes(console("a")), bytes(console("b"))].concat());
    let client = router.connect();
    let choose =
        |names: &[&str]| RequestBody::SubscribeConsoles { names: names.iter().map(|&name| name.to_owned()).collect() };
    router.client_bytes(client, &request(1, choose(&["b", "c"])));
    assert_eq!(received(&mut router, client), [done(1), console("b")], "what was written before, of one of them");
    router.host_bytes(&[bytes(console("a")), bytes(console("c"))].concat());
    assert_eq!(received(&mut router, client), [console("c")]);
    router.client_bytes(client, &request(2, choose(&[])));
    router.host_bytes(&bytes(console("b")));
    assert_eq!(received(&mut router, client), [done(2)]);
    let all = Subscription { consoles: true, ..Subscription::default() };
    router.client_bytes(client, &request(3, RequestBody::Subscribe(all)));
    received(&mut router, client);
    router.host_bytes(&bytes(console("a")));
    assert_eq!(received(&mut router, client), [console("a")]);
}

#[test]
fn a_late_console_client_sees_what_was_written_before() {
    let mut router = ready();
    let text = b"login: ".repeat(500);
    for chunk in text.chunks(100) {
        router.host_bytes(&bytes(Frame::Stream(Stream::Console { name: "a".into(), bytes: chunk.into() })));
    }
    let client = router.connect();
    let wanted = Subscription { consoles: true, ..Subscription::default() };
    router.client_bytes(client, &request(1, RequestBody::Subscribe(wanted)));
    let shown = received(&mut router, client).into_iter().skip(1).flat_map(|frame| match frame {
        Frame::Stream(Stream::Console { bytes, .. }) => bytes.into_owned(),
        other => panic!("console output, not {other:?}"),
    });
    assert_eq!(shown.collect::<Vec<_>>(), text);
}

#[test]
fn a_client_gone_in_the_middle_costs_no_other_client() {
    let mut router = ready();
    let (gone, left) = (router.connect(), router.connect());
    let half = request(1, RequestBody::PowerOff);
    router.client_bytes(gone, &half[..half.len() / 2]);
    router.client_bytes(gone, &[]);
    router.client_bytes(left, &request(5, RequestBody::Info));
    router.disconnect(gone);
    let asked = requests(&mut router);
    assert!(matches!(asked[..], [Request { body: RequestBody::Info, .. }]));
    answer(&mut router, asked[0].id);
    assert_eq!(received(&mut router, left), [done(5)]);
}

#[test]
fn an_answer_to_a_client_gone_is_discarded() {
    let mut router = ready();
    let gone = router.connect();
    router.client_bytes(gone, &request(1, RequestBody::Info));
    let asked = requests(&mut router);
    router.disconnect(gone);
    let other = router.connect();
    answer(&mut router, asked[0].id);
    assert_eq!(received(&mut router, other), []);
    assert_eq!(router.take_happened(), []);
}

#[test]
fn a_client_that_asks_without_end_is_refused() {
    let mut router = ready();
    let client = router.connect();
    for id in 0..70 {
        router.client_bytes(client, &request(id, RequestBody::Info));
    }
    assert_eq!(requests(&mut router).len(), MAX_PENDING);
    assert_eq!(received(&mut router, client).len(), 70 - MAX_PENDING);
}

#[test]
fn a_client_that_does_not_read_is_dropped() {
    let mut router = ready();
    let client = router.connect();
    let wanted = Subscription { consoles: true, ..Subscription::default() };
    router.client_bytes(client, &request(1, RequestBody::Subscribe(wanted)));
    let chunk = bytes(Frame::Stream(Stream::Console { name: "a".into(), bytes: vec![b'x'; 1000].into() }));
    (0..5000).for_each(|_| router.host_bytes(&chunk));
    assert!(router.client(client).is_some_and(|client| client.is_leaving && client.outbox.is_empty()));
}

#[test]
fn a_damaged_frame_of_the_host_is_noted() {
    let mut router = ready();
    let mut damaged = bytes(done(1));
    damaged[2] ^= 0x55;
    router.host_bytes(&damaged);
    assert!(matches!(&router.take_happened()[..], [What::Note(note)] if note.contains("damaged")));
}

proptest! {
    #[test]
    fn no_bytes_of_a_client_reach_the_host_undecoded(noise in prop::collection::vec(any::<u8>(), 0..3000)) {
        let mut router = ready();
        let client = router.connect();
        router.client_bytes(client, &noise);
        requests(&mut router);
    }
}
