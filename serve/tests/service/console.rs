// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of guests' consoles.

use std::io::{BufReader, Write as _};
use std::net::TcpStream;

use serde_json::json;
use serve::access::Role;

use super::api::until;
use super::common::{LIMIT, Running};

const PATH: &str = "/api/v1/hosts/rack1/guests/web/console";

/// Follows the console of `web` from a place on.
fn follow(running: &Running, place: u64) -> BufReader<TcpStream> {
    follow_guest(running, "web", place)
}

fn follow_guest(running: &Running, guest: &str, place: u64) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(running.address).expect("connected");
    stream.set_read_timeout(Some(LIMIT)).expect("set");
    let path = PATH.replace("web", guest);
    let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: {place}\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("asked");
    BufReader::new(stream)
}

/// A guest writes.
fn write(running: &Running, guest: &'static str, bytes: &[u8]) {
    running.host.state.lock().expect("state").output.push((guest, bytes.to_vec()));
}

/// Returns whether the host sends consoles.
fn is_sent(running: &Running) -> bool {
    running.host.state.lock().expect("state").has_consoles
}

#[test]
fn the_host_is_asked_for_the_consoles_of_guests_that_clients_follow_and_for_no_other() {
    let running = Running::start();
    write(&running, "db", b"another guest's");
    let followed = |expected: &[&str]| {
        let is_so = |running: &Running| {
            let state = running.host.state.lock().expect("state");
            state.has_consoles != expected.is_empty() && state.consoles_of == expected
        };
        running.until(&format!("the host sends {expected:?}"), is_so);
    };
    let web = follow(&running, 0);
    followed(&["web"]);
    // Requests go on, and yet the output of the other guest stays in the host.
    running.until("it was read", |running| running.get("/api/v1/hosts/rack1").json()["read_ms"].as_u64() > Some(0));
    assert_eq!(running.host.state.lock().expect("state").output, [("db", b"another guest's".to_vec())]);
    let mut db = follow_guest(&running, "db", 0);
    followed(&["db", "web"]);
    until(&mut db, "output", |piece| *piece == json!({"text": "another guest's", "lost": 0}));
    drop(web);
    followed(&["db"]);
    drop(db);
    followed(&[]);
}

#[test]
fn a_console_is_followed_and_typed_on_and_is_sent_only_while_a_client_follows_it() {
    let running = Running::start();
    write(&running, "web", b"login: ");
    write(&running, "db", b"another guest's");
    assert!(!is_sent(&running));
    let mut reader = follow(&running, 0);
    until(&mut reader, "output", |piece| *piece == json!({"text": "login: ", "lost": 0}));
    assert_eq!(running.post(PATH, b"root\r").status, 200);
    until(&mut reader, "output", |piece| piece["text"] == "root\r");
    assert_eq!(running.host.state.lock().expect("state").typed, b"root\r");
    // A second client gets earlier output, from the place that it names.
    until(&mut follow(&running, 7), "output", |piece| piece["text"] == "root\r");
    assert!(is_sent(&running));
    write(&running, "web", b"b");
    until(&mut reader, "output", |piece| piece["text"] == "b");
    drop(reader);
    running.until("no client follows", |running| !is_sent(running));
    write(&running, "web", b"c");
    let mut text = String::new();
    let mut seen = follow(&running, 0);
    while !text.ends_with('c') {
        text += until(&mut seen, "output", |piece| piece["lost"] == 0)["text"].as_str().expect("text");
    }
    assert!(text.starts_with("login: root\rb\r\n[baton serve: nothing was received for "), "{text:?}");
}

#[test]
fn typed_bytes_are_bounded_and_not_written_down() {
    let running = Running::start();
    for bytes in [&b""[..], &[b'x'; 1025]] {
        let answer = running.post(PATH, bytes);
        assert_eq!((answer.status, &answer.json()["error"]), (400, &json!("invalid")), "{}", bytes.len());
    }
    assert_eq!(running.post(PATH, &[b'x'; 1024]).status, 200);
    let audit = running.audit();
    assert_eq!(audit.len(), 2, "{audit:?}");
    assert_eq!((&audit[0]["request"], &audit[0]["subject"]), (&json!("guest-type"), &json!("web")));
    assert!(!format!("{audit:?}").contains("xx"), "{audit:?}");
    let reader = Running::with_role(Role::Read);
    assert_eq!(reader.post(PATH, b"x").status, 403);
    assert_eq!(reader.host.state.lock().expect("state").typed, b"");
    write(&reader, "web", b"seen");
    until(&mut follow(&reader, 0), "output", |piece| piece["text"] == "seen");
}

#[test]
fn a_console_that_there_is_not_is_named() {
    let running = Running::start();
    let answer = running.get("/api/v1/hosts/rack1/guests/wep/console");
    let message = "there is no guest \"wep\" at rack1; did you mean \"web\"?";
    assert_eq!((answer.status, &answer.json()["message"]), (404, &json!(message)));
    assert_eq!(running.get("/api/v1/hosts/rack2/guests/web/console").status, 503);
}

#[test]
fn a_guest_that_floods_its_console_and_a_client_that_reads_nothing_keep_no_other_one_waiting() {
    const BYTES: usize = 2 << 20;
    let running = Running::start();
    let mut idle = follow(&running, 0);
    running.until("it is sent", is_sent);
    write(&running, "web", &vec![b'x'; BYTES]);
    for _ in 0..20 {
        assert_eq!(running.post("/api/v1/hosts/rack1/guests/db/start", b"").status, 200);
        assert_eq!(running.post("/api/v1/hosts/rack1/guests/db/stop", b"").status, 200);
    }
    write(&running, "web", b"end");
    // It gets the bytes that its socket and the service have kept; of the rest it gets the number.
    let mut seen = 0;
    until(&mut idle, "output", |piece| {
        let text = piece["text"].as_str().expect("text");
        seen += piece["lost"].as_u64().expect("a number") + text.len() as u64;
        text.ends_with("end")
    });
    // Output that the service could not take in time is marked with a line.
    assert!(seen > 64 << 10 && seen < BYTES as u64 + 4096, "{seen}");
}
