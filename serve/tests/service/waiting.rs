// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of the wait for a guest's end.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use serve::access::Role;
use serve::options::Options;
use wire::VmState;

use super::common::{LIMIT, Running, options, serve};
use super::fake::FakeHost;

const GUESTS: &str = "/api/v1/hosts/rack1/guests";

/// Starts a service that reads its host once, and then only when there is a reason.
fn rarely_read() -> Running {
    let folder = tempfile::tempdir().expect("a folder");
    let host = FakeHost::start(folder.path(), "rack1");
    let here = format!("unix:{}", host.socket.display());
    let refresh = Duration::from_secs(3600);
    let address = serve(Options { refresh, ..options(folder.path(), &[("rack1", &here)]) }, Role::Update);
    let running = Running { folder, host, address };
    running.until("rack1 is connected", |running| running.get("/api/v1/hosts/rack1").json()["state"] == "connected");
    running
}

/// Clients that wait for the guest `web`.
fn clients(running: &Running, count: usize) -> Vec<TcpStream> {
    let head = format!("GET {GUESTS}/web/wait?timeout=3600 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let client = |_| {
        let mut stream = TcpStream::connect(running.address).expect("connected");
        stream.set_read_timeout(Some(LIMIT)).expect("set");
        stream.write_all(head.as_bytes()).expect("sent");
        stream
    };
    (0..count).map(client).collect()
}

fn wait(running: &Running, guest: &str, query: &str) -> (u16, Value) {
    let answer = running.get(&format!("{GUESTS}/{guest}/wait{query}"));
    (answer.status, answer.json())
}

#[test]
fn a_guest_that_has_ended_is_answered_as_the_listing_has_it() {
    let running = Running::start();
    let (status, db) = wait(&running, "db", "");
    assert_eq!((status, &db["state"]), (200, &json!("stopped")));
    assert_eq!(db, running.get(GUESTS).json()[1]);
    running.host.state.lock().expect("state").guests[0].state = VmState::Failed;
    assert_eq!(wait(&running, "web", "?timeout=60").1["state"], "failed");
}

#[test]
fn the_wait_ends_with_the_guest_and_goes_on_over_an_update() {
    let running = rarely_read();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| wait(&running, "web", "?timeout=60"));
        assert_eq!(running.post("/api/v1/hosts/rack1/update?by=bundle", b"").status, 202);
        running.until("the update is done", |running| {
            running.get("/api/v1/hosts/rack1/updates").json()[0]["step"] == "done"
        });
        assert!(!waiting.is_finished());
        assert_eq!(running.post(&format!("{GUESTS}/web/stop"), b"").status, 200);
        let (status, web) = waiting.join().expect("it ends");
        assert_eq!((status, &web["name"], &web["state"]), (200, &json!("web"), &json!("stopped")));
    });
}

#[test]
fn a_guest_that_was_started_since_the_last_reading_is_waited_for() {
    let running = rarely_read();
    // No event has the service read again.
    running.host.state.lock().expect("state").guests[1].state = VmState::Running;
    assert_eq!(running.get(GUESTS).json()[1]["state"], "stopped");
    let (status, body) = wait(&running, "db", "?timeout=1");
    assert_eq!((status, &body["error"]), (408, &json!("timed-out")));
    let message = body["message"].as_str().expect("a message");
    assert!(message.starts_with("guest db has not ended within 1 s"), "{message}");
}

#[test]
fn a_wait_that_makes_no_sense_is_refused() {
    let running = Running::start();
    for query in ["?timeout=0", "?timeout=3601", "?timeout=x", "?for=ended"] {
        let (status, body) = wait(&running, "web", query);
        assert_eq!((status, &body["error"]), (400, &json!("invalid")), "{query}");
    }
    let (status, body) = wait(&running, "wbe", "");
    let message = "there is no guest \"wbe\" at rack1; did you mean \"web\"?";
    assert_eq!((status, &body["error"], &body["message"]), (404, &json!("not-found"), &json!(message)));
    running.until("rack2 is given up", |running| running.get("/api/v1/hosts/rack2").json()["state"] == "unreachable");
    let answer = running.get("/api/v1/hosts/rack2/guests/web/wait");
    assert_eq!((answer.status, &answer.json()["error"]), (503, &json!("unreachable")));
}

#[test]
fn a_host_that_is_lost_ends_the_wait() {
    let running = Running::start();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| wait(&running, "web", "?timeout=60"));
        thread::sleep(Duration::from_millis(200));
        running.host.vanish();
        let (status, body) = waiting.join().expect("it ends");
        assert_eq!((status, &body["error"]), (503, &json!("unreachable")));
    });
}

#[test]
fn clients_that_wait_cost_the_host_nothing() {
    let running = rarely_read();
    let before = running.host.state.lock().expect("state").answered;
    let mut clients = clients(&running, 1000);
    let began = Instant::now();
    assert_eq!(running.post(&format!("{GUESTS}/web/pause"), b"").status, 200);
    assert!(began.elapsed() < Duration::from_secs(2), "the line is free: {:?}", began.elapsed());
    // The order, and a question each two seconds that has the counters of CPUs go on.
    let asked = running.host.state.lock().expect("state").answered - before;
    assert!(asked < 50, "{asked}");
    assert_eq!(running.post(&format!("{GUESTS}/web/stop"), b"").status, 200);
    for client in &mut clients {
        let mut answer = String::new();
        client.read_to_string(&mut answer).expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\"stopped\""), "{answer}");
    }
}

#[test]
fn a_client_that_goes_leaves_its_place_to_others() {
    let running = rarely_read();
    // More than there are places.
    for _ in 0..3 {
        drop(clients(&running, 1000));
    }
    let began = Instant::now();
    assert_eq!(running.get(GUESTS).status, 200);
    assert!(began.elapsed() < LIMIT / 2, "{:?}", began.elapsed());
}
