// SPDX-License-Identifier: MIT OR Apache-2.0
//! The broker between real sockets: clients on one side, a fake hypervisor on the other.

use std::borrow::Cow;
use std::io::Write as _;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use baton::client::{Client, Closed};
use tempfile::TempDir;
use wire::{
    Decoder, Event, EventKind, Frame, MAX_FRAME_BYTES, Refusal, RefusalCode, ReplyBody, Request, RequestBody, Response,
    Stream, Subscription, VERSION, encode,
};

use super::*;
use crate::What;

const SECOND: Duration = Duration::from_secs(1);

/// A broker with a fake hypervisor.
struct Rig {
    folder: TempDir,
    happened: Receiver<What>,
    /// The requests that the hypervisor got.
    asked: Receiver<RequestBody>,
    threads: Vec<JoinHandle<()>>,
    stop: Option<UnixStream>,
    /// The hypervisor's own end.
    wire: Wire,
}

/// An end of a stream that two threads write to: a write that waits for room may not be cut by the other's.
struct Wire {
    stream: UnixStream,
    turn: Arc<Mutex<()>>,
}

impl Wire {
    fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { stream: self.stream.try_clone()?, turn: self.turn.clone() })
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_pieces([bytes, &[]])
    }

    fn write_pieces(&mut self, pieces: [&[u8]; 2]) -> io::Result<()> {
        let _turn = self.turn.lock().expect("no thread panics");
        pieces.into_iter().try_for_each(|piece| self.stream.write_all(piece))
    }

    fn shutdown(&self) -> io::Result<()> {
        self.stream.shutdown(std::net::Shutdown::Both)
    }
}

impl Rig {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let listener = UnixListener::bind(folder.path().join("control.sock")).expect("bound");
        let (host, stream) = UnixStream::pair().expect("a pair");
        let wire = Wire { stream, turn: Arc::default() };
        let (stop, stopped) = UnixStream::pair().expect("a pair");
        let (notify, happened) = mpsc::channel();
        let (ask, asked) = mpsc::channel();
        let end = wire.try_clone().expect("cloned");
        let hypervisor = thread::spawn(move || hypervisor(end, |body| drop(ask.send(body))));
        let broker = thread::spawn(move || run(host, listener, stopped, |what| drop(notify.send(what))));
        Self { folder, happened, asked, threads: vec![hypervisor, broker], stop: Some(stop), wire }
    }

    fn socket(&self) -> UnixStream {
        UnixStream::connect(self.folder.path().join("control.sock")).expect("connected")
    }

    fn client(&self) -> Client {
        Client::over(self.socket())
    }

    /// Returns the requests that the hypervisor got, without subscriptions.
    fn orders(&self) -> Vec<RequestBody> {
        self.asked.try_iter().filter(|body| !matches!(body, RequestBody::Subscribe(_))).collect()
    }

    fn send(&mut self, frame: &Frame<'_>) {
        self.wire.write_all(&bytes(frame)).expect("sent");
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.stop = None;
        let _ = self.wire.shutdown();
        self.threads.drain(..).for_each(|thread| thread.join().expect("no thread panics"));
    }
}

fn bytes(frame: &Frame<'_>) -> Vec<u8> {
    encode(frame, &mut [0; MAX_FRAME_BYTES]).expect("it fits").to_vec()
}

/// Answers every order with "done", and an order to "ghost" with a refusal.
fn hypervisor(mut wire: Wire, ask: impl Fn(RequestBody)) {
    let (mut decoder, mut buffer) = (Decoder::new(), [0; 512]);
    while let Some(received) = read(&mut wire.stream, &mut buffer).filter(|received| !received.is_empty()) {
        let mut answers = Vec::new();
        decoder.push(received, |frame| {
            let Ok(Frame::Request(Request { id, body })) = frame else { panic!("the hypervisor noticed: {frame:?}") };
            let refusal = || Refusal { code: RefusalCode::UnknownVm, reason: "no".to_owned(), hint: String::new() };
            let is_ghost = body == RequestBody::VmStart { name: "ghost".to_owned() };
            let result = if is_ghost { Err(refusal()) } else { Ok(ReplyBody::Done) };
            answers.extend(bytes(&Frame::Response(Response { id, result })));
            ask(body);
        });
        // In two pieces: a serial line cuts anywhere.
        let (head, tail) = answers.split_at(answers.len() / 2);
        if wire.write_pieces([head, tail]).is_err() {
            return;
        }
    }
}

#[test]
fn many_clients_are_served_at_once() {
    let rig = Rig::new();
    let mut clients: Vec<Client> = (0..8).map(|_| rig.client()).collect();
    for _ in 0..20 {
        for client in &mut clients {
            client.order(RequestBody::VmStart { name: "a".to_owned() }).expect("done");
        }
    }
    assert_eq!(rig.orders().len(), 160);
    assert_eq!(rig.happened.recv_timeout(SECOND), Ok(What::Ready));
}

#[test]
fn a_refusal_comes_through_with_its_reason() {
    let rig = Rig::new();
    let error = rig.client().order(RequestBody::VmStart { name: "ghost".to_owned() }).expect_err("refused");
    assert_eq!(error.downcast_ref::<Refusal>().map(|refusal| refusal.code), Some(RefusalCode::UnknownVm));
}

/// Returns the reason that a client gets that sends `noise` instead of a request.
fn reason_for(rig: &Rig, noise: &[u8]) -> String {
    let mut socket = rig.socket();
    socket.write_all(noise).expect("sent");
    let error = Client::over(socket).request_within(SECOND, RequestBody::Info).expect_err("refused");
    error.downcast_ref::<Refusal>().map_or_else(|| format!("{error:#}"), |refusal| refusal.reason.clone())
}

#[test]
fn garbage_ends_one_connection_with_the_reason() {
    let rig = Rig::new();
    let mut bystander = rig.client();
    assert!(reason_for(&rig, b"root\r\nroot\r\n\0").contains("garbage"));
    assert!(reason_for(&rig, &[1; 10_000]).contains("longer than"));
    assert!(reason_for(&rig, &[3, 1, 1, 0]).contains("broke off"));
    bystander.order(RequestBody::PowerOff).expect("the others are served");
    assert_eq!(rig.orders(), [RequestBody::PowerOff]);
}

#[test]
fn an_unknown_version_is_named() {
    let rig = Rig::new();
    // Version 200, one byte of content, the checksum of both; no zeroes in it, so the stuffing is one block.
    let content = [200, 7];
    let checksum = crc32(&content).to_le_bytes();
    let frame = [&[7][..], &content, &checksum, &[0]].concat();
    assert!(!frame[..7].contains(&0));
    let reason = reason_for(&rig, &frame);
    assert!(reason.contains("version 200") && reason.contains(&format!("version {VERSION}")), "{reason}");
}

/// The bundle's checksum is the wire's.
fn crc32(bytes: &[u8]) -> u32 {
    bundle::crc32(bytes)
}

#[test]
fn a_client_that_dies_in_the_middle_is_dropped() {
    let rig = Rig::new();
    let frame = bytes(&Frame::Request(Request { id: 1, body: RequestBody::PowerOff }));
    for length in 0..frame.len() {
        rig.socket().write_all(&frame[..length]).expect("sent");
    }
    rig.client().order(RequestBody::VmReset { name: "a".to_owned() }).expect("the others are served");
    assert_eq!(rig.orders(), [RequestBody::VmReset { name: "a".to_owned() }]);
}

#[test]
fn streams_reach_subscribers_and_the_screen() {
    let mut rig = Rig::new();
    let mut client = rig.client();
    client.subscribe(Subscription { events: true, consoles: true, log: false }).expect("subscribed");
    // The broker's own greeting may be answered after the client's request.
    assert_eq!(rig.happened.recv_timeout(SECOND), Ok(What::Ready));
    let event = Event { sequence: 0, time_ns: 1, kind: EventKind::HostReady };
    rig.send(&Frame::Stream(Stream::Event(Cow::Borrowed(&event))));
    rig.send(&Frame::Stream(Stream::Console { name: "a".into(), bytes: b"hello".into() }));
    assert_eq!(client.next(SECOND).expect("open"), Some(Stream::Event(Cow::Borrowed(&event))));
    assert!(matches!(client.next(SECOND).expect("open"), Some(Stream::Console { .. })));
    let seen: Vec<_> = std::iter::from_fn(|| rig.happened.recv_timeout(SECOND).ok()).take(2).collect();
    assert_eq!(seen, [What::Event(event), What::Console { name: "a".to_owned(), bytes: b"hello".to_vec() }]);
}

#[test]
fn noise_of_the_host_is_noted_and_survived() {
    let mut rig = Rig::new();
    let mut client = rig.client();
    client.order(RequestBody::PowerOff).expect("done");
    rig.wire.write_all(b"panicked at somewhere\0").expect("sent");
    client.order(RequestBody::PowerOff).expect("done");
    let notes = std::iter::from_fn(|| rig.happened.recv_timeout(SECOND).ok()).take(2);
    assert!(notes.into_iter().any(|what| matches!(what, What::Note(note) if note.contains("garbage"))));
}

#[test]
fn clients_are_let_go_when_the_host_ends() {
    let rig = Rig::new();
    let mut client = rig.client();
    client.order(RequestBody::PowerOff).expect("done");
    rig.wire.shutdown().expect("shut down");
    assert!(client.next(SECOND).expect_err("closed").is::<Closed>());
}

#[test]
fn what_the_host_wrote_before_it_ended_is_read_though_the_broker_is_stopped() {
    // The emulator has ended, and was seen to end, before the broker had a core.
    for _ in 0..20 {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("control.sock");
        let listener = UnixListener::bind(&path).expect("bound");
        let (host, mut wire) = UnixStream::pair().expect("a pair");
        let (stop, stopped) = UnixStream::pair().expect("a pair");
        let event = Event { sequence: 0, time_ns: 1, kind: EventKind::HostReady };
        let chunk = bytes(&Frame::Stream(Stream::Console { name: "a".into(), bytes: vec![b'x'; 1000].into() }));
        (0..40).for_each(|_| wire.write_all(&chunk).expect("sent"));
        wire.write_all(&bytes(&Frame::Stream(Stream::Event(Cow::Borrowed(&event))))).expect("sent");
        drop((wire, stop));
        let (notify, happened) = mpsc::channel();
        run(host, listener, stopped, |what| drop(notify.send(what)));
        let seen: Vec<What> = happened.try_iter().collect();
        let console = seen.iter().filter(|what| matches!(what, What::Console { .. })).count();
        assert_eq!((console, seen.last()), (40, Some(&What::Event(event))));
    }
}

#[test]
fn clients_get_what_is_left_for_them_though_the_broker_is_stopped() {
    // More than a socket holds.
    const CHUNKS: usize = 1000;
    let mut rig = Rig::new();
    let mut client = rig.client();
    client.subscribe(Subscription { consoles: true, ..Subscription::default() }).expect("subscribed");
    let chunk = bytes(&Frame::Stream(Stream::Console { name: "a".into(), bytes: vec![b'x'; 1000].into() }));
    (0..CHUNKS).for_each(|_| rig.wire.write_all(&chunk).expect("sent"));
    let consoles = std::iter::from_fn(|| rig.happened.recv_timeout(SECOND).ok());
    assert_eq!(consoles.filter(|what| matches!(what, What::Console { .. })).take(CHUNKS).count(), CHUNKS);
    rig.stop = None;
    for number in 0..CHUNKS {
        // One that has no core for a while is waited for; all this takes longer than a client may be quiet.
        if number.is_multiple_of(CHUNKS / 5) {
            thread::sleep(Duration::from_millis(300));
        }
        assert!(matches!(client.next(SECOND).expect("open"), Some(Stream::Console { .. })));
    }
    assert!(client.next(SECOND).expect_err("closed").is::<Closed>());
}

/// It reads nothing, and all the others would wait for it.
#[test]
fn a_client_that_takes_nothing_is_not_waited_for() {
    let mut rig = Rig::new();
    let mut client = rig.client();
    client.subscribe(Subscription { consoles: true, ..Subscription::default() }).expect("subscribed");
    let chunk = bytes(&Frame::Stream(Stream::Console { name: "a".into(), bytes: vec![b'x'; 1000].into() }));
    (0..1000).for_each(|_| rig.wire.write_all(&chunk).expect("sent"));
    let begin = Instant::now();
    rig.stop = None;
    while rig.happened.recv_timeout(10 * SECOND).is_ok() {}
    assert!(begin.elapsed() < 8 * SECOND, "{:?}", begin.elapsed());
    drop(client);
}
