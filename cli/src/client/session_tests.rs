// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of a client with a key, and of hosts that take signed requests, that take others, and that know none.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::thread;

use seal::{SecretKey, Unpacker};
use session::{Admitted, Guard, Key, Moment, Plain};
use wire::{
    Decoder, Frame, MAX_FRAME_BYTES, Refusal, RefusalCode, ReplyBody, Request, RequestBody, Response, Role, UploadKind,
    encode,
};

use super::Client;
use crate::testing::host_info;

const OPERATOR: u8 = 1;
const READER: u8 = 2;

fn secret(number: u8) -> SecretKey {
    SecretKey::from_seed([number; 32])
}

fn key(number: u8, name: &str, role: Option<Role>) -> Key {
    Key { name: name.to_owned(), key: secret(number).public(), role }
}

fn guard() -> Guard {
    let keys =
        vec![key(OPERATOR, "ops", Some(Role::Update)), key(READER, "watch", Some(Role::Read)), key(3, "old", None)];
    Guard::new(keys, Plain::Denied)
}

/// A host's state about its clients.
struct State {
    /// `None`: an image of an earlier release, to which a request for a session is no request.
    guard: Option<Guard>,
    nonce: u8,
    carried_out: Vec<RequestBody>,
    file: Vec<u8>,
    unpacker: Unpacker,
}

type Shared = Arc<Mutex<State>>;

fn host(guard: Option<Guard>) -> (Client, Shared) {
    let (ours, theirs) = UnixStream::pair().expect("a pair");
    let state = Arc::new(Mutex::new(State {
        guard,
        nonce: 0,
        carried_out: Vec::new(),
        file: Vec::new(),
        unpacker: Unpacker::default(),
    }));
    let shared = state.clone();
    thread::spawn(move || serve(theirs, &shared));
    (Client::over(ours), state)
}

fn serve(mut line: UnixStream, state: &Shared) {
    let (mut decoder, mut buffer) = (Decoder::new(), [0; 512]);
    while let Ok(count @ 1..) = line.read(&mut buffer) {
        for &byte in &buffer[..count] {
            let Some(Ok(Frame::Request(request))) = decoder.push_byte(byte) else { continue };
            let response = state.lock().expect("unharmed").answer(request);
            let mut frame = [0; MAX_FRAME_BYTES];
            line.write_all(encode(&Frame::Response(response), &mut frame).expect("it fits")).expect("a reader");
        }
    }
}

impl State {
    fn answer(&mut self, Request { id, body }: Request) -> Response {
        let Some(guard) = &mut self.guard else { return self.answer_as_before(id, body) };
        self.nonce += 1;
        let nonce = [self.nonce; 32];
        let moment = Moment { now_ns: 0, is_receiving: !self.file.is_empty() };
        let result = match guard.admit(body, moment, || Some(nonce)) {
            Ok(Admitted::Challenge(challenge)) => Ok(ReplyBody::Challenge(challenge)),
            Ok(Admitted::Request(body, _)) => Ok(self.carry_out(body)),
            Err(denied) => {
                let (reason, hint) = (denied.to_string(), denied.hint().to_owned());
                Err(Refusal { code: denied.code(), reason, hint })
            }
        };
        Response { id, result }
    }

    fn answer_as_before(&mut self, id: u32, body: RequestBody) -> Response {
        if matches!(body, RequestBody::SessionBegin { .. } | RequestBody::Signed(_)) {
            let reason = "a frame holds no message of version 4; its sender is in error".to_owned();
            let refusal = Refusal { code: RefusalCode::Protocol, reason, hint: String::new() };
            return Response { id: 0, result: Err(refusal) };
        }
        Response { id, result: Ok(self.carry_out(body)) }
    }

    fn carry_out(&mut self, body: RequestBody) -> ReplyBody {
        let reply = match &body {
            RequestBody::Info => ReplyBody::Info(host_info()),
            RequestBody::UploadBegin { bytes, .. } => {
                self.file.reserve(*bytes as usize);
                if self.file.is_empty() {
                    self.file.push(0);
                }
                ReplyBody::Received { next_offset: self.file.len() as u64 - 1 }
            }
            RequestBody::UploadData { bytes, .. } => {
                self.file.extend(bytes);
                ReplyBody::Received { next_offset: self.file.len() as u64 - 1 }
            }
            RequestBody::UploadPacked { bytes, packed, .. } => {
                let from = self.file.len();
                self.file.resize(from + *bytes as usize, 0);
                assert_eq!(self.unpacker.unpack(packed, &mut self.file[from..]), Ok(()));
                ReplyBody::Received { next_offset: self.file.len() as u64 - 1 }
            }
            _ => ReplyBody::Done,
        };
        self.carried_out.push(body);
        reply
    }
}

fn refusal(error: anyhow::Error) -> Refusal {
    error.downcast().expect("a refusal")
}

fn stop() -> RequestBody {
    RequestBody::VmStop { name: "web".to_owned() }
}

#[test]
fn a_client_with_a_key_operates_a_host_that_takes_signed_requests() {
    let (mut client, state) = host(Some(guard()));
    client.sign_with(Some(secret(OPERATOR))).expect("a session");
    assert!(client.info().is_ok() && !client.is_unsigned_there());
    client.order(stop()).expect("carried out");
    assert_eq!(state.lock().expect("unharmed").carried_out, [RequestBody::Info, stop()]);
}

#[test]
fn a_client_without_a_key_gets_a_hint() {
    let (mut client, state) = host(Some(guard()));
    let refused = refusal(client.order(stop()).expect_err("refused"));
    assert!(refused.reason.contains("signed requests only") && refused.hint.contains("--key FILE"), "{refused}");
    assert_eq!(refused.code, RefusalCode::Denied);
    assert!(state.lock().expect("unharmed").carried_out.is_empty());
}

#[test]
fn a_role_that_is_not_enough_a_revoked_key_and_a_strange_one_are_refused_by_name() {
    let (mut client, _) = host(Some(guard()));
    client.sign_with(Some(secret(READER))).expect("a session");
    let refused = refusal(client.order(stop()).expect_err("refused"));
    assert_eq!(refused.code, RefusalCode::Denied);
    assert_eq!(refused.reason, "the control key \"watch\" has the role read, and this takes operate");
    let refused = refusal(client.sign_with(Some(secret(3))).expect_err("refused"));
    assert_eq!(refused.reason, "the control key \"old\" is revoked");
    let refused = refusal(client.sign_with(Some(secret(9))).expect_err("refused"));
    assert!(refused.reason.contains("no control key") && refused.hint.contains("[[trust.control]]"), "{refused}");
}

/// The next image has the keys, and none of the sessions.
#[test]
fn a_client_begins_another_session_when_the_image_has_changed() {
    let (mut client, state) = host(Some(guard()));
    client.sign_with(Some(secret(OPERATOR))).expect("a session");
    client.info().expect("answered");
    state.lock().expect("unharmed").guard = Some(guard());
    client.info().expect("answered in another session");
    client.order(stop()).expect("carried out");
    assert_eq!(state.lock().expect("unharmed").carried_out.len(), 3);
}

/// A refusal that is forged on the line does not cause a second signature for one order.
#[test]
fn an_order_is_not_signed_again_by_itself() {
    let (mut client, state) = host(Some(guard()));
    client.sign_with(Some(secret(OPERATOR))).expect("a session");
    client.info().expect("answered");
    state.lock().expect("unharmed").guard = Some(guard());
    let refused = refusal(client.order(stop()).expect_err("refused"));
    assert!(refused.reason.contains("the session is not known, so nothing was done"), "{refused}");
    client.order(stop()).expect("there is another session");
    assert_eq!(state.lock().expect("unharmed").carried_out, [RequestBody::Info, stop()]);
}

#[test]
fn a_host_without_control_keys_gets_requests_as_before() {
    let (mut client, state) = host(Some(Guard::new(Vec::new(), Plain::Denied)));
    client.sign_with(Some(secret(OPERATOR))).expect("nothing to sign");
    client.order(stop()).expect("carried out");
    assert!(!client.is_unsigned_there());
    assert_eq!(state.lock().expect("unharmed").carried_out, [stop()]);
}

#[test]
fn an_image_that_knows_no_sessions_is_operated_without_and_that_is_reported() {
    let (mut client, state) = host(None);
    client.sign_with(Some(secret(OPERATOR))).expect("no session");
    client.order(stop()).expect("carried out");
    assert!(client.is_unsigned_there());
    // It is updated to one that takes signed requests only.
    state.lock().expect("unharmed").guard = Some(guard());
    client.info().expect("a session has begun");
    assert!(!client.is_unsigned_there());
}

#[test]
fn pieces_of_a_file_are_sent_without_signatures_after_a_signed_announcement() {
    let (mut client, state) = host(Some(guard()));
    client.sign_with(Some(secret(OPERATOR))).expect("a session");
    let file: Vec<u8> = (0..20_000u32).map(|number| number as u8).collect();
    client.upload(UploadKind::Image, &file, |_| {}).expect("sent");
    assert_eq!(state.lock().expect("unharmed").file[1..], file);
}
