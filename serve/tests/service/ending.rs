// SPDX-License-Identifier: MIT OR Apache-2.0
//! The end of the service by a signal: a process of its own each time.

use std::fs;
use std::io::{BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::fake::FakeHost;
use super::process::Service;

/// The rest of a stream.
fn rest(mut news: BufReader<UnixStream>) -> String {
    let mut text = String::new();
    news.read_to_string(&mut text).expect("it ends");
    text
}

fn results(folder: &Path) -> Vec<Value> {
    let text = fs::read_to_string(folder.join("audit.jsonl")).expect("an audit log");
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    lines.filter_map(|line| line.get("result").cloned()).collect()
}

#[test]
fn a_signal_ends_the_service_in_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let host = FakeHost::start(folder.path(), "rack1");
    for (round, signal, order) in [(0, Signal::TERM, "stop"), (1, Signal::INT, "start")] {
        // Records of an hour are written together, unless the service ends before.
        let mut service = Service::connected(folder.path(), &host, &["--history-delay", "3600"]);
        let console = service.follow("hosts/rack1/guests/web/console", "text/event-stream");
        let (news, idle, mut half) = (service.news(), service.stream(), service.stream());
        let body = br#"{"function": "00:04.0", "guest": "web"}"#;
        let head = format!(
            "POST /api/v1/hosts/rack1/pci/assign HTTP/1.1\r\nHost: baton\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n",
            body.len()
        );
        half.write_all(head.as_bytes()).and_then(|()| half.write_all(&body[..10])).expect("sent");
        let answer = service.ask("POST", &format!("hosts/rack1/guests/web/{order}"));
        assert_eq!(answer["done"], format!("guest-{order}"));
        service
            .process
            .until("the event is seen", &format!("hosts/rack1/events?from={}", round + 2), |all| all[0].is_object());
        service.signal(signal);
        service.error("no client is taken any more");
        let socket = folder.path().join("serve.sock");
        assert!(UnixStream::connect(&socket).is_err() && !socket.exists());
        half.write_all(&body[10..]).expect("the request goes on");
        let mut answer = String::new();
        half.read_to_string(&mut answer).expect("an answer, and the end of the connection");
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("0000:00:04.0"), "{answer}");
        for stream in [news, console] {
            let last = rest(stream);
            assert!(last.contains("event: end\ndata: {\"reason\":\"the service ends\"}\n\n"), "{last}");
        }
        assert_eq!(rest(BufReader::new(idle)), "");
        assert_eq!(service.ended().code(), Some(0));
    }
    // Only the history has records now: the host is gone.
    host.vanish();
    let service = Service::start(folder.path(), &host, &[]);
    let events = service.ask("GET", "hosts/rack1/events?since=0");
    let kinds: Vec<_> = events.as_array().expect("events").iter().map(|event| event["kind"].clone()).collect();
    assert_eq!(kinds.len(), 3, "{events}");
    assert_eq!((&kinds[0], &kinds[1]["vm-stopped"]["name"]), (&json!("host-ready"), &json!("web")));
    assert_eq!(kinds[2], json!({"vm-started": {"name": "web"}}));
    assert_eq!(service.ask("GET", "health")["history"]["moved_aside"], Value::Null);
}

#[test]
fn a_wait_for_a_guest_ends_with_the_service() {
    let folder = tempfile::tempdir().expect("a folder");
    let host = FakeHost::start(folder.path(), "rack1");
    let mut service = Service::connected(folder.path(), &host, &[]);
    let mut waiting = service.stream();
    waiting.write_all(b"GET /api/v1/hosts/rack1/guests/web/wait HTTP/1.1\r\nHost: baton\r\n\r\n").expect("asked");
    // An answer to a later request: the service has the first one, too.
    assert_eq!(service.ask("GET", "hosts/rack1/guests")[0]["state"], "running");
    service.signal(Signal::TERM);
    let mut answer = String::new();
    waiting.read_to_string(&mut answer).expect("an answer, and the end of the connection");
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("the service ends"), "{answer}");
    assert_eq!(service.ended().code(), Some(0));
}

#[test]
fn an_update_under_way_is_waited_for_and_no_other_is_begun() {
    let folder = tempfile::tempdir().expect("a folder");
    let host = FakeHost::start(folder.path(), "rack1");
    let mut service = Service::connected(folder.path(), &host, &[]);
    let (news, mut other) = (service.news(), service.stream());
    service.begin_update(&host);
    other
        .write_all(b"POST /api/v1/hosts/rack1/update HTTP/1.1\r\nHost: baton\r\nContent-Length: 4\r\n\r\n12")
        .expect("sent");
    service.signal(Signal::TERM);
    service.error("waits for update 1 of rack1, 600s at most");
    other.write_all(b"34").expect("the request goes on");
    let mut refused = String::new();
    other.read_to_string(&mut refused).expect("an answer");
    assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("the service ends"), "{refused}");
    assert_eq!(service.process.child.try_wait().expect("a child"), None, "it waits");
    host.state.lock().expect("state").holds_update = false;
    let last = rest(news);
    let (done, end) = (last.find("\"step\":\"done\""), last.find("event: end\n"));
    assert!(done.is_some() && done < end, "{last}");
    assert_eq!(service.ended().code(), Some(0));
    assert_eq!(results(folder.path()), ["done"]);
}

#[test]
fn an_update_that_does_not_end_is_named_and_a_second_signal_waits_for_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let host = FakeHost::start(folder.path(), "rack1");
    let mut service = Service::connected(folder.path(), &host, &["--stop-timeout", "0.2"]);
    // A client that neither asks nor goes costs no more than the time limit.
    let mut slow = service.stream();
    slow.write_all(b"POST /api/v1/hosts/rack1/update HTTP/1.1\r\nHost: baton\r\nContent-Length: 4\r\n\r\n")
        .expect("sent");
    service.begin_update(&host);
    service.signal(Signal::TERM);
    let error = service.error("update 1 of rack1 had not ended within 200ms");
    assert!(error.contains("connections with a request under way after 200ms: 1; they are cut"), "{error}");
    assert_eq!(service.ended().code(), Some(1));
    host.state.lock().expect("state").holds_update = false;
    let mut service = Service::connected(folder.path(), &host, &[]);
    service.begin_update(&host);
    service.signal(Signal::INT);
    service.error("waits for update 2 of rack1");
    service.signal(Signal::TERM);
    assert_eq!(service.ended().signal(), Some(15));
    assert!(!folder.path().join("serve.sock").exists());
}
